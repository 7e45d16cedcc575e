# SPDX-License-Identifier: Apache-2.0
# trainyard_embed(TARGET SYMBOL FILE): the bytes of FILE as SYMBOL_begin .. SYMBOL_end in TARGET.
function(trainyard_embed target symbol file)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.S)
  file(CONFIGURE OUTPUT ${source} CONTENT [[
.section .rodata
.global @symbol@_begin
.global @symbol@_end
@symbol@_begin:
.incbin "@file@"
@symbol@_end:
.byte 0
.section .note.GNU-stack,"",%progbits
]] @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${file} LANGUAGE ASM)
  target_sources(${target} PRIVATE ${source})
endfunction()
