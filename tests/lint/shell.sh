#!/usr/bin/env bash
# Every shell script of the tree goes through shellcheck. Exit 77 (skipped) where it is not installed.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

if ! command -v shellcheck >/dev/null; then
  echo "SKIP: shellcheck is not installed"
  exit 77
fi

scripts=()
while read -r file; do
  case $(basename "$file") in
    *.sh | *.bash | *.bats) scripts+=("$file") ;;
    *.*) ;;
    *) if head -n 1 "$file" | grep -aqE '^#!.*\b(ba)?sh\b'; then scripts+=("$file"); fi ;;
  esac
done < <(find . \( -name .git -o -path ./build \) -prune -o -type f -print | sort)

shellcheck -x "${scripts[@]}"
echo "shellcheck: ${#scripts[@]} scripts, no finding"
