// The command line as a function of libplimsoll.so.0: a package that has the library needs a program of one
// line beside it (packaging/wheel_program.cpp) and no second copy of the code.
#include "cli/commands.h"
#include "plimsoll/plimsoll_c.h"

int pls_main(int argc, char** argv) { return plimsoll::cli::run(argc, argv); }
