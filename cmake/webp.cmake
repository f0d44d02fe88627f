# libwebp's decoder takes its memory from malloc and has no place for another allocator. This copy of its static library
# calls functions of ours instead (src/images/arena_heap.cpp), which take memory from what a run has planned.
find_path(webp_headers webp/decode.h REQUIRED)
find_library(webp_library NAMES libwebp.a REQUIRED)
set(webp_archive ${CMAKE_BINARY_DIR}/libplimsoll_webp.a)
execute_process(COMMAND ${CMAKE_OBJCOPY} --redefine-sym malloc=plimsoll_arena_malloc
  --redefine-sym calloc=plimsoll_arena_calloc --redefine-sym free=plimsoll_arena_free ${webp_library} ${webp_archive}
  COMMAND_ERROR_IS_FATAL ANY)
add_library(webp_decoder STATIC IMPORTED GLOBAL)
set_target_properties(webp_decoder PROPERTIES IMPORTED_LOCATION ${webp_archive}
  INTERFACE_INCLUDE_DIRECTORIES ${webp_headers})
