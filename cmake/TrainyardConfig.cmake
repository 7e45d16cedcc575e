# SPDX-License-Identifier: Apache-2.0
# find_package(Trainyard) for plug-ins; Trainyard_ROOT is the source folder or where the program is
# installed. Gives trainyard_plugin(NAME SOURCE...) and TRAINYARD_PROGRAM, if there is one.
get_filename_component(Trainyard_PREFIX ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)  # of the sources
while(NOT EXISTS ${Trainyard_PREFIX}/include/trainyard/plugin.h)
  get_filename_component(Trainyard_PARENT ${Trainyard_PREFIX} DIRECTORY)
  if(Trainyard_PARENT STREQUAL Trainyard_PREFIX)
    set(Trainyard_FOUND FALSE)
    set(Trainyard_NOT_FOUND_MESSAGE "no include/trainyard above ${CMAKE_CURRENT_LIST_DIR}")
    return()
  endif()
  set(Trainyard_PREFIX ${Trainyard_PARENT})
endwhile()

find_program(TRAINYARD_PROGRAM trainyard NO_DEFAULT_PATH
  PATHS ${Trainyard_PREFIX}/bin ${Trainyard_PREFIX}/build/release)

# The shared object NAME.so. Its own names stay its own: only TRAINYARD_PLUGIN is exported.
function(trainyard_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_include_directories(${name} SYSTEM PRIVATE ${Trainyard_PREFIX}/include)
  target_compile_features(${name} PRIVATE cxx_std_20)
  # As the program itself: the same sums on every machine.
  target_compile_options(${name} PRIVATE -ffp-contract=off)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON)
endfunction()
