// Completion for shells: a case for each command, from the same declarations as --help.
#include <fmt/format.h>

#include <functional>

#include "cli/shell/manual.h"
#include "settings/settings.h"

namespace plimsoll::cli {
namespace {

/// The words that a value is one of: "auto|never|DIR" has two, "gguf" is one, "FILE" none.
std::vector<std::string> words_of(const OptionText& option) {
  std::vector<std::string> words;
  std::string_view rest = option.value;
  while (!rest.empty()) {
    const size_t bar = std::min(rest.find('|'), rest.size());
    const std::string_view word = rest.substr(0, bar);
    if (word.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ=") == std::string_view::npos) words.emplace_back(word);
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Every command with its path, the program itself first.
void visit(const CommandText& command, const std::string& path,
           const std::function<void(const CommandText&, const std::string&)>& take) {
  take(command, path);
  for (const CommandText& each : command.commands)
    visit(each, path.empty() ? each.name : path + " " + each.name, take);
}

bool takes_settings(const CommandText& command) {
  for (const OptionText& option : command.options)
    if (option.by_place && option.value == "key=value") return true;
  return false;
}

std::vector<std::string> commands_of(const CommandText& command) {
  std::vector<std::string> names;
  for (const CommandText& each : command.commands) names.push_back(each.name);
  return names;
}

std::vector<std::string> options_of(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options)
    if (!option.by_place) names.push_back(option.names.back());
  return names;
}

std::vector<std::string> setting_keys() {
  std::vector<std::string> keys;
  for (const settings::Setting& setting : settings::settings())
    if (!setting.is_for_tests) keys.push_back(setting.path + "=");
  return keys;
}

std::string quoted(std::string text) {
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

/// For zsh's _arguments: brackets and colons end a part.
std::string explained(std::string text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_argument(const OptionText& option) {
  const auto words = words_of(option);
  const std::string values = words.empty() ? "_files" : "(" + joined(words) + ")";
  if (option.by_place)
    return quoted(fmt::format("{}:{}:{}", option.several ? "*" : "", explained(option.names.front()),
                              option.value == "key=value" ? "_plimsoll_settings" : values));
  std::string spec = (option.several ? "*" : "") + option.names.back() + "[" + explained(option.text) + "]";
  if (option.value.empty()) return quoted(spec);
  return quoted(spec + ":" + explained(option.value) + ":" + values);
}

}  // namespace

std::string bash_completion(const CommandText& program) {
  std::string paths, values, names, with_settings;
  visit(program, "", [&](const CommandText& command, const std::string& path) {
    const size_t blank = path.rfind(' ');
    if (!path.empty())
      paths += fmt::format("      '{} {}') path='{}' ;;\n",
                           blank == std::string::npos ? "" : path.substr(0, blank), command.name, path);
    names += fmt::format("    '{}') commands='{}' options='{}' ;;\n", path, joined(commands_of(command)),
                         joined(options_of(command)));
    for (const OptionText& option : command.options)
      if (const auto words = words_of(option); !option.by_place && !words.empty())
        values += fmt::format("    '{} {}') words='{}' ;;\n", path, option.names.back(), joined(words));
    if (takes_settings(command)) with_settings += (with_settings.empty() ? "'" : "|'") + path + "'";
  });
  return fmt::format(R"(# bash completion for plimsoll                                  -*- shell-script -*-
_plimsoll() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} path='' words='' commands='' options='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${{COMP_WORDS[i]}}" in
{}    esac
  done
  case "$path $prev" in
{}  esac
  case "$path" in
{}  esac
  if [ -z "$words" ]; then
    case "$cur" in
      -*) words=$options ;;
      *) words=$commands ;;
    esac
  fi
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  case "$path" in
    {})
      if [ -z "$cur" ]; then return; fi
      if [ "${{#COMPREPLY[@]}}" -eq 0 ]; then compopt -o nospace; fi
      mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -W '{}' -- "$cur")
      ;;
  esac
}}
complete -o filenames -F _plimsoll plimsoll
)",
                     paths, values, names, with_settings, joined(setting_keys()));
}

std::string zsh_completion(const CommandText& program) {
  std::string functions, settings_list;
  for (const settings::Setting& setting : settings::settings())
    if (!setting.is_for_tests)
      settings_list += fmt::format("    {}\n", quoted(explained(setting.path) + "=:" + setting.help));
  visit(program, "", [&](const CommandText& command, const std::string& path) {
    std::string name = "_plimsoll" + (path.empty() ? "" : "_" + path);
    std::ranges::replace(name, ' ', '_');
    functions += name + "() {\n";
    std::string arguments;
    for (const OptionText& option : command.options) arguments += " \\\n    " + zsh_argument(option);
    if (command.commands.empty()) {
      functions += "  _arguments -S" + arguments + "\n}\n\n";
      return;
    }
    std::string list, cases;
    for (const CommandText& each : command.commands) {
      list += fmt::format("    {}\n", quoted(each.name + ":" + each.text));
      cases += fmt::format("      {}) {}_{} ;;\n", each.name, name, each.name);
    }
    functions += fmt::format(R"(  local -a commands=(
{}  )
  _arguments -C{} \
    '1:command:->command' '*::argument:->argument'
  case "$state" in
    command) _describe command commands ;;
    argument) case "$words[1]" in
{}    esac ;;
  esac
}}

)",
                             list, arguments, cases);
  });
  return "#compdef plimsoll\n\n_plimsoll_settings() {\n"
         "  if compset -P '*='; then\n    _files\n    return\n  fi\n  local -a keys=(\n" +
         settings_list + "  )\n  _describe -t settings setting keys -S ''\n}\n\n" + functions +
         "_plimsoll \"$@\"\n";
}

}  // namespace plimsoll::cli
