#!/usr/bin/env bats
# fleetsim cache: prefix hits of a trace by capacity.
load helpers

# Blocks of 16: 64 tokens; the same; one more; the first 40 of them and 30 others.
four() {
  cat >four.csv <<'CSV'
arrival_s,prompt_tokens,output_tokens,hash_ids
0,64,1,11 12 13 14
1,64,1,11 12 13 14
2,65,1,11 12 13 14 15
3,70,1,11 12 23 24 25
CSV
}

@test "four requests: 144 of 263 tokens hit" {
  four
  "$FLEETSIM_BIN" cache four.csv --block-size 16 --capacity 32 --capacity 47 --capacity 1M --json >out.json
  [ "$(json out.json 'o["unlimited"]["hit_tokens"], o["prompt_tokens"], round(o["unlimited"]["hit_rate"], 4)')" = "(144, 263, 0.5475)" ]
  [ "$(json out.json '[c["capacity_blocks"] for c in o["capacities"]]')" = "[2, 2, 62500]" ]
  [ "$(json out.json '[c["hit_tokens"] for c in o["capacities"]]')" = "[96, 96, 144]" ]
  fs_run cache four.csv --block-size 16
  assert_status 0
  assert_output_has "unlimited"
  assert_output_has "54.75"
}

@test "Mooncake's conversation trace: 105,592 block hits" {
  need_shared data/mooncake/conversation_trace.jsonl.gz
  "$FLEETSIM_BIN" cache --json "$FLEETSIM_SHARED/data/mooncake/conversation_trace.jsonl.gz" >out.json
  [ "$(json out.json 'o["requests"], o["prompt_tokens"], o["output_tokens"]')" = "(12031, 144793823, 4122048)" ]
  [ "$(json out.json 'o["unlimited"]["hit_blocks"], o["unlimited"]["hit_tokens"]')" = "(105592, 54063104)" ]
}

@test "Mooncake's synthetic trace: 77,740 block hits" {
  need_shared data/mooncake/synthetic_trace.jsonl.gz
  "$FLEETSIM_BIN" cache --json "$FLEETSIM_SHARED/data/mooncake/synthetic_trace.jsonl.gz" >out.json
  [ "$(json out.json 'o["requests"], o["prompt_tokens"]')" = "(3993, 61194628)" ]
  [ "$(json out.json 'o["unlimited"]["hit_blocks"], o["unlimited"]["hit_tokens"]')" = "(77740, 39802880)" ]
}

@test "what cannot be answered is refused" {
  four
  fs_run cache four.csv
  assert_status 2
  assert_stderr_has "four.csv:1:39: error: hash_ids need hash_block_size"
  fs_run cache four.csv --block-size 16 --capacity lots
  assert_status 2
  assert_stderr_has "--capacity"
  printf 'arrival_s,prompt_tokens,output_tokens\n0,64,1\n' >plain.csv
  fs_run cache plain.csv --block-size 16
  assert_status 2
  assert_stderr_has "the trace has no hash_ids"
  printf '{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [5, 5]}\n' >bad.jsonl
  fs_run cache bad.jsonl
  assert_status 2
  assert_stderr_has "bad.jsonl:1:75: error: hash_ids must rise"
  fs_run cache none.csv
  assert_status 2
  assert_stderr_has "cannot be opened"
  fs_run cache
  assert_status 64
}
