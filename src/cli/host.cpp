#include "cli/host.h"

#include <malloc.h>

#include "base/host.h"
#include "cli/child_process.h"
#include "cli/terminal.h"

namespace plimsoll::cli {

void be_host() {
  set_host({.note = [](const std::string& text) { print_message("note: " + text); },
            .trim_heap = [] { malloc_trim(0); },
            .run_apart = in_child_process});
}

}  // namespace plimsoll::cli
