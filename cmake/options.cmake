# Flags shared by every target.

# Results are the same bits on every build: no contraction behind our back (kernels ask for
# fused multiply-add where they want it), no fast-math.
add_compile_options(-ffp-contract=off -fno-math-errno -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                    -Wold-style-cast -Wunused -fno-omit-frame-pointer)
if(PLIMSOLL_WERROR)
  add_compile_options(-Werror)
endif()

if(PLIMSOLL_SANITIZE)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)  # bounds of the library's containers
  add_compile_options(-fsanitize=${PLIMSOLL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PLIMSOLL_SANITIZE})
  if(PLIMSOLL_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # A check of every access, which doubles g++'s time. A null pointer stops under the address sanitizer as well;
    # alignment is checked by the fuzz targets, in all that reads bytes, and clang compiles it in passing.
    add_compile_options(-fno-sanitize=null,vptr,alignment)
  endif()
endif()

# Half of what a file costs to compile is what it includes. Whole builds (the Makefile's, the sanitizers' presets)
# compile eight files of a module at once; names in their unnamed namespaces must differ then.
option(PLIMSOLL_JOIN_SOURCES "Compile a module's sources several files at once" OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND (PLIMSOLL_SANITIZE OR PLIMSOLL_JOIN_SOURCES))
  # g++ 12 loses track of std::variant and std::optional under the sanitizers' instrumentation and in long files;
  # tools/check_gcc compiles files one by one, where it does not.
  add_compile_options(-Wno-maybe-uninitialized)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # The compiler looks for memory to free again and again, a seventh of its time (a tenth under the sanitizers), and
  # finds little: without, a file takes a quarter more memory, 0.7 to 0.9 GiB.
  add_compile_options("SHELL:--param ggc-min-expand=1000" "SHELL:--param ggc-min-heapsize=2000000")
endif()

# Headers that nearly every file includes are parsed once. `OFF` shows whether each file includes what it uses.
option(PLIMSOLL_PCH "Precompile the headers that most files include" ON)
if(PLIMSOLL_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # What g++ 12 says of std::string's own code (GCC bugs 105329, 105651), and no longer keeps to itself where that
  # comes precompiled. tools/check_gcc has these warnings on.
  add_compile_options(-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()
# plimsoll_precompile(TARGET OWNER HEADER): HEADER comes first in all sources of TARGET; OWNER, which is compiled
# with the same flags, is the target that it is compiled for.
function(plimsoll_precompile target owner header)
  if(NOT PLIMSOLL_PCH)
    return()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${header})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

find_program(CCACHE ccache)
if(CCACHE)
  # What ccache asks for where headers are precompiled: it cannot see macros of a time or a date in them (there are
  # none, as cmake/precompiled.h has only headers of the system's). Their bytes are hashed once, not once a file.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=true ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
