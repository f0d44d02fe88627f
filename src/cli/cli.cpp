// The command line's frame: parsing, errors, exit codes.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <system_error>

#include "backends/cpu/kernels/isa.h"
#include "base/process.h"
#include "cli/commands.h"
#include "io/suggest.h"

namespace plimsoll::cli {
namespace {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 2;
    case ErrorCode::kBadData:
      return 65;
    case ErrorCode::kDoesNotFit:
      return 69;
    case ErrorCode::kIo:
      return 74;
    case ErrorCode::kInterrupted:
      return 75;
    case ErrorCode::kDiverged:
      return 76;
  }
  return 2;
}

/// One line for the terminal: control characters, which a file's content may bring, are spelled out.
std::string printable(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      line += c;
    else
      line += fmt::format("\\x{:02x}", byte);
  }
  return line;
}

int report(const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", printable(error.message()).c_str());
  const std::string hint = error.hint.empty() ? "see plimsoll --help" : error.hint;
  std::fprintf(stderr, "hint: %s\n", printable(hint).c_str());
  for (const Error& other : error.more) report(other);
  return exit_code(error.code);
}

/// A descriptor that the caller has closed would go to the next file opened, and messages would be written
/// into it. What takes its place refuses: stdout is opened for reading, so that writing to it is an error.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF)
      (void)!::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
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

std::string join(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// What the parser throws, in this program's words.
Error usage_error(const CLI::App& app, const CLI::ParseError& thrown, std::span<char* const> arguments) {
  const auto wrong = [](std::string what, std::string where, std::string hint) {
    return Error{ErrorCode::kInvalidArgument, std::move(what), std::move(where), std::move(hint)};
  };
  const CLI::App* at = &app;
  std::string command = "plimsoll";
  size_t word = 1;
  for (; !at->get_subcommands().empty(); ++word) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  if (at->get_require_subcommand_min() == 0) {
    const std::string_view what = thrown.what();
    return wrong(what == "run is required" ? "the run file is missing" : std::string(what), command,
                 fmt::format("see {} --help", command));
  }
  std::vector<std::string> names;
  for (const CLI::App* each : at->get_subcommands({})) names.push_back(each->get_name());
  const std::string known = "the commands are " + join(names);
  if (word >= arguments.size()) return wrong("no command is given", command, known);
  if (arguments[word][0] == '-')
    return wrong(fmt::format("there is no option '{}' before a command",
                             std::string_view(arguments[word]).substr(0, 60)),
                 command, known);
  const std::string asked = did_you_mean(arguments[word], names);
  return wrong(fmt::format("there is no command '{}'", std::string_view(arguments[word]).substr(0, 60)),
               command, asked.empty() ? known : asked + " " + known);
}

constexpr const char* kFooter = R"(examples:
  plimsoll plan run.yaml                              what a run needs, before it starts
  plimsoll plan run.yaml model.preset=llama-3-8b      the same for a public model, without files
  plimsoll train run.yaml training.max_steps=100      later key=value win over the file
  plimsoll train run.yaml --json > events.jsonl       one JSON object a line
  plimsoll generate --model DIR --prompt "Once"       text from a model
  plimsoll data tokenize --tokenizer DIR --input "corpus/*.txt" --output train.shard
                                                      text and conversations to tokens, once
  plimsoll bench offsets cases/*.csv                  the offset search on recorded lifetimes
  plimsoll doctor                                     this machine: what is fast, what is missing
)";

}  // namespace

void add_run_arguments(CLI::App& command, RunArguments& arguments) {
  command.add_option("run", arguments.file, "the run file (YAML)")->required()->type_name("RUN.yaml");
  command.add_option("overrides", arguments.overrides, "settings over the file: dotted.path=yaml value")
      ->type_name("key=value");
  command.add_flag("--json", arguments.json, "one JSON object a line on stdout and nothing else");
}

int run(int argc, char** argv) {
  const Environment environment{now_seconds()};
  occupy_standard_descriptors();
  if (const auto isa = cpu::select_isa(std::getenv("PLIMSOLL_ISA")); !isa) return report(isa.error());
  CLI::App app{
      "Plimsoll trains neural networks inside the memory at hand: it says the peak first, to the byte."};
  app.set_version_flag("--version", "plimsoll " PLIMSOLL_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  const std::pair<const char*, Command> commands[] = {
      {"plan", add_plan(app)},       {"train", add_train(app)},       {"eval", add_eval(app)},
      {"inspect", add_inspect(app)}, {"generate", add_generate(app)}, {"bench", add_bench(app)},
      {"data", add_data(app)},       {"doctor", add_doctor(app)},     {"predict", add_predict(app)}};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // The parser's one way to report; help and version come through here too.
    if (e.get_exit_code() == 0) return finish(app.exit(e));
    return report(usage_error(app, e, {argv, static_cast<size_t>(argc)}));
  }
  try {
    for (const auto& [name, command] : commands)
      if (app.got_subcommand(name)) {
        const Status status = command(environment);
        return status ? finish(0) : report(status.error());
      }
  } catch (const std::bad_alloc&) {
    return report({ErrorCode::kIo,
                   "the operating system refused memory",
                   {},
                   "close other programs or lower memory.budget"});
  }
  return 2;
}

}  // namespace plimsoll::cli
