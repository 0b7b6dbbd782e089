# Writes the header REVISION_H with the revision of the source in SOURCE, anew only when it changed. It
# runs at every build: what a result file says it was made from must not be of an earlier one.
find_package(Git QUIET)
set(revision "")
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --tags --dirty
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${REVISION_H} CONTENT "#define FLEETSIM_REVISION \"${revision}\"\n")
