# cmake -DOUTPUT=FILE.cpp -DNAMESPACE=ns -DHEADER=h "-DTEXTS=function=file;…" -P embed_text.cmake: files as functions that
# give their text. References to source maps, which would not travel, are taken out.
set(text "// Made by cmake/embed_text.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
foreach(entry ${TEXTS})
  string(REGEX MATCH "^([^=]*)=(.*)$" ignored "${entry}")
  set(function "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" content)
  string(REGEX REPLACE "/[/*]# sourceMappingURL=[^\n]*" "" content "${content}")
  string(APPEND text "std::string_view ${function}() {\n  return R\"PLIMSOLL(${content})PLIMSOLL\";\n}\n\n")
endforeach()
string(APPEND text "}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUTPUT} "${text}")
