# SPDX-License-Identifier: Apache-2.0
# The files that CONTENT, lines of assembler, includes stand in TARGET as SYMBOL_begin .. SYMBOL_end.
function(trainyard_embed_content target symbol content)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.S)
  file(CONFIGURE OUTPUT ${source} CONTENT [[
.section .rodata
.global @symbol@_begin
.global @symbol@_end
@symbol@_begin:
@content@
@symbol@_end:
.byte 0
.section .note.GNU-stack,"",%progbits
]] @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${ARGN}" LANGUAGE ASM)
  target_sources(${target} PRIVATE ${source})
endfunction()

# trainyard_embed(TARGET SYMBOL FILE): the bytes of FILE as SYMBOL_begin .. SYMBOL_end in TARGET.
function(trainyard_embed target symbol file)
  trainyard_embed_content(${target} ${symbol} ".incbin \"${file}\"" ${file})
endfunction()

# trainyard_embed_all(TARGET SYMBOL FILE...): likewise of each file its name without the ending and
# its text, each ended by a zero.
function(trainyard_embed_all target symbol)
  set(content "")
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME_WE)
    string(APPEND content ".asciz \"${name}\"\n.incbin \"${file}\"\n.byte 0\n")
  endforeach()
  trainyard_embed_content(${target} ${symbol} "${content}" ${ARGN})
endfunction()
