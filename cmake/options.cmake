# Flags shared by every target.

# Results are the same bits on every build: no contraction behind our back (kernels ask for
# fused multiply-add where they want it), no fast-math.
add_compile_options(-ffp-contract=off -fno-math-errno -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                    -Wold-style-cast -Wunused -fno-omit-frame-pointer)
if(PLIMSOLL_WERROR)
  add_compile_options(-Werror)
endif()

if(PLIMSOLL_SANITIZE)
  add_compile_options(-fsanitize=${PLIMSOLL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PLIMSOLL_SANITIZE})
  if(PLIMSOLL_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # A check of every access, which doubles g++'s time. A null pointer stops under the address sanitizer as well;
    # alignment is checked by the fuzz targets, in all that reads bytes, and clang compiles it in passing.
    add_compile_options(-fno-sanitize=null,vptr,alignment)
  endif()
  if(PLIMSOLL_SANITIZE MATCHES thread)
    # g++ 12 loses track of std::variant under this sanitizer's instrumentation.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
