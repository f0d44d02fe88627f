// plimsoll completion and plimsoll manual: what installing puts beside the program.
#include <cstdio>

#include "cli/commands.h"
#include "cli/shell/manual.h"
#include "io/file.h"

namespace plimsoll::cli {

Command add_completion(Parser app) {
  struct Arguments {
    std::string shell;
  };
  return add_command<Arguments>(
      app, "completion", "print the shell completion of commands, options and settings",
      [](Parser command, Arguments& arguments) {
        command.add_option("shell", arguments.shell, "the shell").required().one_of({"bash", "zsh"});
        command.footer(
            "example: plimsoll completion bash > ~/.local/share/bash-completion/completions/plimsoll");
      },
      [app](const Arguments& arguments) -> Status {
        const CommandText program = app.describe();
        std::fputs((arguments.shell == "bash" ? bash_completion(program) : zsh_completion(program)).c_str(),
                   stdout);
        return Ok{};
      });
}

Command add_manual(Parser app) {
  struct Arguments {
    std::string folder;
  };
  return add_command<Arguments>(
      app, "manual", "write the manual pages into a folder",
      [](Parser command, Arguments& arguments) {
        command.add_option("folder", arguments.folder, "the folder to create").required().type_name("DIR");
        command.footer("example: plimsoll manual pages && man pages/plimsoll-train.1");
      },
      [app](const Arguments& arguments) -> Status {
        PLIMSOLL_TRY(io::create_writable_directory(arguments.folder));
        for (const auto& [name, text] : manual_pages(app.describe(), PLIMSOLL_VERSION))
          PLIMSOLL_TRY(io::write_file_atomically(arguments.folder + "/" + name, text));
        return Ok{};
      });
}

}  // namespace plimsoll::cli
