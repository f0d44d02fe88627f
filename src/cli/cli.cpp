// The command line's frame: parsing, errors, exit codes.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "backends/cpu/kernels/isa.h"
#include "base/caught.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/host.h"
#include "cli/profile/profile.h"
#include "cli/table.h"
#include "cli/terminal.h"

namespace plimsoll::cli {
namespace {

/// A descriptor that the caller has closed would go to the next file opened, and messages would be written
/// into it. What takes its place refuses: stdout is opened for reading, so that writing to it is an error.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF)
      (void)!::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
}

[[noreturn]] void leave(const char* text, ErrorCode code) {
  if (::isatty(STDERR_FILENO) != 0) (void)!::write(STDERR_FILENO, "\n", 1);  // behind a bar, perhaps
  (void)!::write(STDERR_FILENO, text, std::strlen(text));
  ::_exit(exit_code(code));
}

/// Memory that is refused ends the program where it is asked for, on any thread. What is written then is as
/// after a kill: whatever has a name is whole. Nothing is unwound: there may be no memory for the message,
/// and g++ 12's variants do not stand an exception in their copies. Nothing here allocates.
void refuse_memory() {
  leave("error: the operating system refused memory\nhint: close other programs or lower memory.budget\n",
        ErrorCode::kIo);
}

/// What nobody caught on another thread.
void end_uncaught() {
  if (std::current_exception() == nullptr) std::abort();  // a bug, which has said so
  try {
    throw;
  } catch (const std::bad_alloc&) {
    refuse_memory();
  } catch (const std::system_error&) {
    leave(
        "error: the operating system refused a request\nhint: raise the limits on memory, files and "
        "processes "
        "(ulimit -a)\n",
        ErrorCode::kIo);
  } catch (...) {
    leave("error: unexpected value\nhint: please report this with the run file\n", ErrorCode::kBadData);
  }
}

/// Results that did not arrive are a failure, whatever else went well.
int finish(int code) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (code != 0 || (flushed && std::ferror(stdout) == 0)) return code;
  const std::string why = errno != 0 ? fmt::format(": {}", std::generic_category().message(errno)) : "";
  return report({ErrorCode::kIo, "the results could not be written" + why, "stdout",
                 "check where stdout leads: is the disk full, the pipe's reader gone?"});
}

constexpr const char* kCliFooter = R"(examples:
  plimsoll init --model DIR --data chats.jsonl        a first run file, planned on this machine
  plimsoll plan run.yaml                              what a run needs, before it starts
  plimsoll plan run.yaml model.preset=llama-3-8b      the same for a public model, without files
  plimsoll train run.yaml training.max_steps=100      later key=value win over the file
  plimsoll train run.yaml --json > events.jsonl       one JSON object per line
  plimsoll generate --model DIR --prompt "Once"       text from a model
  plimsoll merge --model DIR --adapter runs/lora/final --output merged    merges a LoRA adapter into its model
  plimsoll quantize --model DIR --format nf4 --output model-nf4      4 or 8 bits, for transformers too
  plimsoll export --model DIR --format gguf --output model.gguf      for llama.cpp
  plimsoll data tokenize --tokenizer DIR --input "corpus/*.txt" --output train.shard
                                                      tokenizes text and conversations once
  plimsoll import sft.yaml --output run.yaml          from transformers, TRL, torchtune, axolotl, DeepSpeed
  plimsoll bench offsets cases/*.csv                  the search for arena offsets on recorded lifetimes
  plimsoll report runs/one                            an HTML page about a run
  plimsoll launch --ranks 2 -- train run.yaml         two processes of this machine share each step
  plimsoll watch runs/one                             the progress of a run of another process
  plimsoll doctor                                     this machine: what is fast, what is missing
)";

}  // namespace

void add_run_arguments(Parser command, RunArguments& arguments, bool required) {
  const Option run = command.add_option("run", arguments.file, "the run file (YAML)").type_name("RUN.yaml");
  if (required) Option(run).required();
  command
      .add_option("overrides", arguments.overrides, "settings that override the file: dotted.path=YAML value")
      .type_name("key=value");
  command.add_flag("--json", arguments.json, "print one JSON object per line on stdout and nothing else");
}

namespace {

/// The command that the arguments name; success without one where they ask for help.
Status run_command(int argc, char** argv) {
  const Environment environment{now_seconds()};
  PLIMSOLL_TRY(cpu::select_isa(std::getenv("PLIMSOLL_ISA")));
  CommandLine command_line({"plimsoll",
                            "Plimsoll trains neural networks within a memory budget; it plans the peak "
                            "memory before the first step.",
                            "plimsoll " PLIMSOLL_VERSION, kCliFooter});
  Parser app = command_line.parser();
  app.require_subcommand();
  // In the order in which somebody meets them.
  const std::pair<const char*, Command> commands[] = {{"init", add_init(app)},
                                                      {"plan", add_plan(app)},
                                                      {"train", add_train(app)},
                                                      {"launch", add_launch(app)},
                                                      {"watch", add_watch(app)},
                                                      {"report", add_report(app)},
                                                      {"eval", add_eval(app)},
                                                      {"predict", add_predict(app)},
                                                      {"generate", add_generate(app)},
                                                      {"export", add_export(app)},
                                                      {"merge", add_merge(app)},
                                                      {"quantize", add_quantize(app)},
                                                      {"add-tokens", add_add_tokens(app)},
                                                      {"inspect", add_inspect(app)},
                                                      {"data", add_data(app)},
                                                      {"import", add_import(app)},
                                                      {"presets", add_presets(app)},
                                                      {"profile", add_profile(app)},
                                                      {"bench", add_bench(app)},
                                                      {"calibrate", add_calibrate(app)},
                                                      {"doctor", add_doctor(app)},
                                                      {"completion", add_completion(app)},
                                                      {"manual", add_manual(app)}};
  PLIMSOLL_ASSIGN(const bool is_command, command_line.parse(argc, argv));
  if (!is_command) return Ok{};
  for (const auto& [name, command] : commands)
    if (app.got_subcommand(name)) return command(environment);
  return Error{ErrorCode::kInvalidArgument, "no command is named"};
}

}  // namespace

int run(int argc, char** argv) {
  be_host();
  std::set_new_handler(refuse_memory);
  std::set_terminate(end_uncaught);
  occupy_standard_descriptors();
  const Status status = caught([&] { return run_command(argc, argv); });
  return status ? finish(0) : report(status.error());
}

}  // namespace plimsoll::cli
