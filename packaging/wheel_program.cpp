// The program `plimsoll` as the wheel has it: the library beside it holds the code.
#include "plimsoll/plimsoll_c.h"

int main(int argc, char** argv) { return pls_main(argc, argv); }
