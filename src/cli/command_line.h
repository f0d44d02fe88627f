// The command line as subcommands see it: which options there are, and where their values go. CLI11, which
// parses, is behind it in command_line.cpp alone: its header costs each file that includes it five seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace plimsoll::cli {

/// An option, or an argument by its place, as it is being declared. A handle: copies mean the same option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option required();
  /// What --help calls the value: "FILE".
  Option type_name(const std::string& name);
  /// An integer from `least` to `most`; --help calls it N.
  Option range(int64_t least, int64_t most);
  /// One of these words, which --help shows as "a|b|c".
  Option one_of(const std::vector<std::string>& words);
  /// One value each time it is given, as often as it is given.
  Option repeatable();
  /// --help shows the value that the variable has now.
  Option show_default();
  /// Not together with `other`.
  Option excludes(const Option& other);

 private:
  CLI::Option* option_;
};

/// What was declared, for who writes it down: manual pages, completion.
struct OptionText {
  std::vector<std::string> names;  ///< "--json"; of an argument by its place its name
  std::string value;               ///< what the value is called; "a|b|c": one of these; empty: a flag
  std::string text;
  bool by_place = false, required = false, several = false;
};
struct CommandText {
  std::string name, text;
  std::string footer;  ///< up to the first blank line: what follows it is for a terminal
  std::vector<OptionText> options;
  std::vector<CommandText> commands;
};

/// A command with its options, or the program itself. A handle: copies mean the same command.
class Parser {
 public:
  explicit Parser(CLI::App* app) : app_(app) {}
  Parser add_subcommand(const std::string& name, const std::string& text);
  /// One of the subcommands has to be given.
  void require_subcommand();
  /// What --help ends with; a function is called when it is asked for.
  void footer(const std::string& text);
  void footer(const std::function<std::string()>& text);

  /// "--name" is an option, "name" an argument by its place. `to` is written where it was given, and has to
  /// live until the command has run.
  /// T: std::string, int, int64_t, uint64_t, std::vector<std::string>, std::optional of int64_t or double.
  template <class T>
  Option add_option(const std::string& name, T& to, const std::string& text);
  /// An option that may be given without a value: `to` then becomes "true".
  Option add_optional_value(const std::string& name, std::string& to, const std::string& text);
  /// Without a value: where it is given, `to` becomes `value`.
  void add_flag(const std::string& name, bool& to, const std::string& text, bool value = true);

  /// This command and all below it, in the order in which they were declared.
  [[nodiscard]] CommandText describe() const;

  /// Whether this command, or a subcommand of it, was chosen; known once the command line is parsed.
  [[nodiscard]] bool parsed() const;
  [[nodiscard]] bool got_subcommand(const std::string& name) const;

 private:
  CLI::App* app_;
};

/// What a program is called and says of itself.
struct ProgramText {
  std::string name, text, version, footer;
};

class CommandLine {
 public:
  explicit CommandLine(const ProgramText& program);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  [[nodiscard]] Parser parser() { return Parser(app_.get()); }
  /// Fills the variables of all that was given. False: help or the version was asked for, and is on stdout.
  /// Errors: kInvalidArgument, with the commands or the options that there are as its hint.
  Result<bool> parse(int argc, char** argv);

 private:
  std::string name_;
  std::unique_ptr<CLI::App> app_;
};

}  // namespace plimsoll::cli
