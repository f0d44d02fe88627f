// How the headers are compiled. They are C++20 over the C functions of plimsoll_c.h: no type of C++ crosses
// into the library, so a program may use another compiler, standard library or -std than the library was
// built with.
#pragma once

// Without exceptions each function that can fail returns a Result. A compiler that has them switched off
// chooses this by itself. The two forms have namespaces of their own, so that one program may hold both.
#if !defined(PLIMSOLL_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define PLIMSOLL_NO_EXCEPTIONS 1
#endif

#ifdef PLIMSOLL_NO_EXCEPTIONS
#define PLIMSOLL_INLINE_NAMESPACE v0_results
#else
#define PLIMSOLL_INLINE_NAMESPACE v0
#endif
