// The one file that knows CLI11: declarations handed on, and what it throws put in this program's words.
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "cli/terminal.h"
#include "io/suggest.h"

namespace plimsoll::cli {
namespace {

std::string join(std::span<const std::string> words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

Error wrong(std::string what, std::string where, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), std::move(where), std::move(hint)};
}

/// Help of an option: its name and value on the left; on the right what it does, its default, and which
/// options it cannot stand together with.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string text = option->get_type_name().empty() ? "" : " " + option->get_type_name();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    return text + (option->get_required() ? " REQUIRED" : "");
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (const std::string given = option->get_default_str(); !given.empty())
      text += fmt::format(" (default: {})", given);
    std::vector<std::string> others;
    for (const CLI::Option* other : option->get_excludes()) others.push_back(other->get_name());
    std::ranges::sort(others);  // they come by address
    return others.empty() ? text : text + fmt::format(" (not with {})", join(others, ", "));
  }
};

/// What the parser throws, in this program's words. `command` begins with the program's name.
Error usage_error(const CLI::App& app, const CLI::ParseError& thrown, std::string command,
                  std::span<char* const> arguments) {
  const CLI::App* at = &app;
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
  const std::string known = "the commands are " + join(names, ", ");
  if (word >= arguments.size()) return wrong("no command is given", command, known);
  if (arguments[word][0] == '-')
    return wrong(fmt::format("there is no option '{}' before a command",
                             std::string_view(arguments[word]).substr(0, 60)),
                 command, known);
  const std::string asked = io::did_you_mean(arguments[word], names);
  return wrong(fmt::format("there is no command '{}'", std::string_view(arguments[word]).substr(0, 60)),
               command, asked.empty() ? known : asked + " " + known);
}

}  // namespace

Option Option::required() { return Option(option_->required()); }

Option Option::type_name(const std::string& name) { return Option(option_->type_name(name)); }

Option Option::range(int64_t least, int64_t most) {
  return Option(option_->type_name("N")->check(CLI::Range(least, most).description("")));
}

Option Option::one_of(const std::vector<std::string>& words) {
  return Option(option_->type_name(join(words, "|"))->check(CLI::IsMember(words).description("")));
}

Option Option::repeatable() { return Option(option_->expected(1)->take_all()->allow_extra_args(false)); }

Option Option::show_default() { return Option(option_->capture_default_str()); }

Option Option::excludes(const Option& other) { return Option(option_->excludes(other.option_)); }

Parser Parser::add_subcommand(const std::string& name, const std::string& text) {
  CLI::App* command = app_->add_subcommand(name, text);
  command->footer("");  // not its parent's
  return Parser(command);
}

void Parser::require_subcommand() { app_->require_subcommand(1); }

void Parser::footer(const std::string& text) { app_->footer(text); }

void Parser::footer(const std::function<std::string()>& text) { app_->footer(text); }

template <class T>
Option Parser::add_option(const std::string& name, T& to, const std::string& text) {
  return Option(app_->add_option(name, to, text));
}
template Option Parser::add_option(const std::string&, std::string&, const std::string&);
template Option Parser::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Parser::add_option(const std::string&, int&, const std::string&);
template Option Parser::add_option(const std::string&, int64_t&, const std::string&);
template Option Parser::add_option(const std::string&, uint64_t&, const std::string&);
template Option Parser::add_option(const std::string&, std::optional<int64_t>&, const std::string&);
template Option Parser::add_option(const std::string&, std::optional<double>&, const std::string&);

Option Parser::add_optional_value(const std::string& name, std::string& to, const std::string& text) {
  const auto take = [&to](const CLI::results_t& given) {
    to = given.empty() || given.front().empty() ? "true" : given.front();
    return true;
  };
  return Option(app_->add_option(name, CLI::callback_t(take), text)->expected(0, 1));
}

void Parser::add_flag(const std::string& name, bool& to, const std::string& text, bool value) {
  if (value)
    app_->add_flag(name, to, text);
  else
    app_->add_flag_function(
        name, [&to](int64_t) { to = false; }, text);
}

namespace {

OptionText described(const CLI::Option& option) {
  OptionText out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  out.by_place = option.get_positional();
  if (out.names.empty()) out.names.push_back(option.get_single_name());
  if (option.get_items_expected_max() > 0) out.value = option.get_type_name();
  out.text = option.get_description();
  out.required = option.get_required();
  out.several = option.get_items_expected_max() > 1;
  return out;
}

CommandText described(const CLI::App& app) {
  CommandText out{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  out.footer = out.footer.substr(0, out.footer.find("\n\n"));
  for (const CLI::Option* option : app.get_options()) out.options.push_back(described(*option));
  for (const CLI::App* each : app.get_subcommands({})) out.commands.push_back(described(*each));
  return out;
}

}  // namespace

CommandText Parser::describe() const { return described(*app_); }

bool Parser::parsed() const { return app_->parsed(); }

bool Parser::got_subcommand(const std::string& name) const { return app_->got_subcommand(name); }

CommandLine::CommandLine(const ProgramText& program)
    : name_(program.name), app_(std::make_unique<CLI::App>(program.text)) {
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->set_version_flag("--version", program.version);
  app_->footer(program.footer);
}

CommandLine::~CommandLine() = default;

Result<bool> CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // The parser's one way to report; help and version come through here too.
    if (e.get_exit_code() != 0) return usage_error(*app_, e, name_, {argv, static_cast<size_t>(argc)});
    std::ostringstream text, unused;
    app_->exit(e, text, unused);
    print_text(text.str());
    return false;
  }
  return true;
}

}  // namespace plimsoll::cli
