#include "cli/commands.h"

int main(int argc, char** argv) { return plimsoll::cli::run(argc, argv); }
