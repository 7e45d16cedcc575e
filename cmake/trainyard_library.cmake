# SPDX-License-Identifier: Apache-2.0
# How every target of the project is built: the language, the warnings, and one function per folder.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

set(TRAINYARD_SANITIZE "" CACHE STRING "Sanitizers to build with, as for -fsanitize=")
option(TRAINYARD_FUZZ "Build what libFuzzer needs (clang)" OFF)

add_library(trainyard_settings INTERFACE)
# -ffp-contract=off: the same sums on every machine (ARCHITECTURE.md, "Determinism").
target_compile_options(trainyard_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -ffp-contract=off
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers>
  # GCC 12 sees impossible overlaps in std::string at -O3 (its bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict>
  # What every event of a simulation goes through; what waits for people, disks and networks.
  $<$<AND:$<CONFIG:Release>,$<BOOL:$<TARGET_PROPERTY:TRAINYARD_HOT>>>:-O3$<SEMICOLON>-U_GLIBCXX_ASSERTIONS>
  $<$<AND:$<CONFIG:Release>,$<BOOL:$<TARGET_PROPERTY:TRAINYARD_COLD>>>:-Og>)
target_include_directories(trainyard_settings INTERFACE ${PROJECT_SOURCE_DIR}/include)
# Where files are compiled together (trainyard_compile_together) a local name may be another file's, and
# types of unnamed namespaces look as if they were of a header; the other builds look.
set(together $<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>)
# They are included by their absolute paths: where the source tree lies must not get into the program, nor
# keep the compiler cache from serving another clone.
target_compile_options(trainyard_settings INTERFACE
  $<${together}:-Wno-shadow> $<${together}:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>
  $<$<AND:${together},$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
if(TRAINYARD_SANITIZE)
  # GCC 12 takes instrumented library code (<regex>) for uninitialised.
  target_compile_options(trainyard_settings INTERFACE
    -fsanitize=${TRAINYARD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # Optimising instrumented code takes as long as all the rest.
    $<$<NOT:$<OR:$<BOOL:${TRAINYARD_FUZZ}>,$<BOOL:$<TARGET_PROPERTY:TRAINYARD_HOT>>>>:-O0>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(trainyard_settings INTERFACE -fsanitize=${TRAINYARD_SANITIZE})
endif()

if(TRAINYARD_FUZZ)
  target_compile_options(trainyard_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The programs of the tests are large, and there are many of them.
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  target_link_options(trainyard_settings INTERFACE -fuse-ld=mold)
endif()

# An optimised program contains gRPC, Protobuf, CBC and what it uses of libarchive: to find and bind their 66
# shared libraries took most of the time of its start.
set(TRAINYARD_ARCHIVES OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT TRAINYARD_SANITIZE)
  set(TRAINYARD_ARCHIVES ON)
endif()

# trainyard_take_archives(TARGET...): of imported libraries; what names the shared one has the archive beside it.
function(trainyard_take_archives)
  if(NOT TRAINYARD_ARCHIVES)
    return()
  endif()
  foreach(target ${ARGN})
    foreach(location IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE)
      get_target_property(shared ${target} ${location})
      string(REGEX REPLACE "[.]so[.0-9]*$" ".a" archive "${shared}")
      if(EXISTS "${archive}")
        set_target_properties(${target} PROPERTIES ${location} "${archive}")
      endif()
    endforeach()
  endforeach()
endfunction()

# What programs allocate with: an optimised simulation takes a tenth less CPU with tcmalloc. Debug
# and sanitizer builds keep the C library's allocator, which finds more mistakes.
add_library(trainyard_allocator INTERFACE)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT TRAINYARD_SANITIZE)
  find_library(TCMALLOC tcmalloc_minimal REQUIRED)
  # What all other libraries take from is found first: a start looks up thousands of names.
  target_link_libraries(trainyard_allocator INTERFACE ${TCMALLOC} stdc++)
endif()

# trainyard_compile_together(TARGET): most of what a compiler does for a file is reading headers: files
# that define no name twice are compiled as one. OFF: each by itself, where a few files are worked on;
# that each can be is looked at by scripts/lint.sh.
option(TRAINYARD_TOGETHER "Compile files of a folder together" ON)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
function(trainyard_compile_together target)
  if(NOT TRAINYARD_TOGETHER)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cc$")
  list(FILTER sources EXCLUDE REGEX "^/|[.]pb[.]cc$")
  list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/together.py ${sources}
                  OUTPUT_VARIABLE numbers OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  foreach(source number IN ZIP_LISTS sources numbers)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${number})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # Other names, other groups.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
endfunction()

# trainyard_test_program(TARGET [HOT] SOURCE...): an executable of tests.
function(trainyard_test_program target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "HOT" "" "")
  add_executable(${target} ${ARG_UNPARSED_ARGUMENTS})
  trainyard_compile_together(${target})
  # Optimising the calls of an optimised library takes longer than it saves.
  if(TRAINYARD_SANITIZE)
    set_target_properties(${target} PROPERTIES TRAINYARD_HOT ${ARG_HOT})
  else()
    set_target_properties(${target} PROPERTIES TRAINYARD_COLD ON)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/include/tests)
  target_link_libraries(${target} PRIVATE trainyard_settings GTest::gtest GTest::gmock GTest::gtest_main)
endfunction()

# What `./dev test --fast` and the sanitizers build.
add_custom_target(fast_tests)

# trainyard_test(TARGET [NAME name] [LABEL fast|golden|live|slow] [SHARDS n] [TIMEOUT s] [FILTER f]
#                [ENVIRONMENT VARIABLE=value ...])
# The tests of a program as one entry of ctest, or as n entries that may run side by side: to start a
# program for each test would take longer than the tests. The labels: docs/developing.md.
function(trainyard_test target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "NAME;LABEL;SHARDS;TIMEOUT;FILTER" "ENVIRONMENT")
  set(NAME ${target})
  set(LABEL fast)
  set(SHARDS 1)
  set(TIMEOUT 600)
  set(FILTER *)
  foreach(setting NAME LABEL SHARDS TIMEOUT FILTER)
    if(ARG_${setting})
      set(${setting} ${ARG_${setting}})
    endif()
  endforeach()
  if(LABEL STREQUAL "fast")
    add_dependencies(fast_tests ${target})
  endif()
  math(EXPR last "${SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(name ${NAME})
    if(SHARDS GREATER 1)
      set(name ${NAME}/${shard})
    endif()
    add_test(NAME ${name} COMMAND ${target} --gtest_brief=1 --gtest_filter=${FILTER})
    set_tests_properties(${name} PROPERTIES LABELS ${LABEL} TIMEOUT ${TIMEOUT} ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${SHARDS};GTEST_SHARD_INDEX=${shard};${ARG_ENVIRONMENT}")
  endforeach()
endfunction()

# trainyard_library(NAME [HOT|COLD] [EXCEPT SOURCE...] [SOURCES GENERATED...] [DEPENDS ...] [LIBRARIES ...])
# The static library trainyard_NAME from the sources of the current folder and the folders in it, which
# CMake finds. A folder sees only its own headers and those of DEPENDS, so that an include up the tree
# does not compile. Files called *_test.cc become NAME_test, labelled fast. HOT: what takes the time of a
# run is optimised harder, without the checks of the standard library, and in sanitizer builds at all.
# COLD: is optimised less, to build sooner.
function(trainyard_library name)
  cmake_parse_arguments(ARG "HOT;COLD" "" "EXCEPT;SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  set(target trainyard_${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cc)
  file(GLOB others RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} */CMakeLists.txt)  # folders with a library of their own
  foreach(other IN LISTS others)
    cmake_path(GET other PARENT_PATH other)
    list(FILTER sources EXCLUDE REGEX "^${other}/")
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test[.]cc$")
  list(REMOVE_ITEM sources ${tests} ${ARG_EXCEPT})
  add_library(${target} STATIC ${sources} ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES TRAINYARD_HOT ${ARG_HOT} TRAINYARD_COLD ${ARG_COLD})
  trainyard_compile_together(${target})
  # Headers are included as "folder/file.h": each folder is reached through a link of its own.
  set(view ${PROJECT_BINARY_DIR}/include/${name})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  cmake_path(GET folder PARENT_PATH above)
  file(MAKE_DIRECTORY ${view}/${above})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/${folder} SYMBOLIC)
  target_include_directories(${target} PUBLIC ${view})
  target_link_libraries(${target} PUBLIC trainyard_settings ${ARG_DEPENDS} PRIVATE ${ARG_LIBRARIES})
  if(tests AND TRAINYARD_TESTS)
    trainyard_test_program(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ${target} ${ARG_LIBRARIES})
    trainyard_test(${name}_test NAME ${name})
  endif()
endfunction()
