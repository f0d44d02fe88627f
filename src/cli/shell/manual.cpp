#include "cli/shell/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "settings/settings.h"

namespace plimsoll::cli {
namespace {

/// As roff reads it as text: no escapes, no hyphen for a minus, no request at a line's begin.
std::string roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_begins = c == '\n';
  }
  return out;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string heading(const std::string& page, int section, const std::string& version) {
  return fmt::format(".TH {} {} \"\" \"plimsoll {}\" \"{}\"\n", upper(roff(page)), section, version,
                     section == 1 ? "User Commands" : "File Formats");
}

std::string names_of(const OptionText& option) {
  std::string out;
  for (const std::string& name : option.names)
    out += (out.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", roff(name));
  if (!option.by_place && !option.value.empty()) out += fmt::format(" \\fI{}\\fR", roff(option.value));
  if (option.by_place)
    out = fmt::format("\\fI{}\\fR", roff(option.value.empty() ? option.names.front() : option.value));
  return out;
}

std::string synopsis(const CommandText& command, const std::string& path) {
  std::string out = fmt::format(".SH SYNOPSIS\n.B {}\n", roff(path));
  if (!command.commands.empty()) return out + "\\fICOMMAND\\fR\n";
  for (const OptionText& option : command.options) {
    if (option.names.front() == "-h") continue;
    const std::string text = names_of(option) + (option.several ? " ..." : "");
    out += option.required ? text + "\n" : "[" + text + "]\n";
  }
  return out;
}

std::string options(const CommandText& command) {
  std::string out = command.options.empty() ? "" : ".SH OPTIONS\n";
  for (const OptionText& option : command.options)
    out += fmt::format(".TP\n{}\n{}\n", names_of(option), roff(option.text));
  return out;
}

void add_pages(const CommandText& command, const std::string& path, const std::string& version,
               std::vector<TextFile>& pages) {
  std::string page_name = path;
  std::ranges::replace(page_name, ' ', '-');
  std::string text = heading(page_name, 1, version);
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(page_name), roff(command.text));
  text += synopsis(command, path);
  if (!command.commands.empty()) {
    text += ".SH COMMANDS\n";
    for (const CommandText& each : command.commands)
      text += fmt::format(".TP\n\\fB{}\\fR\n{}; see \\fB{}\\fR(1)\n", roff(each.name), roff(each.text),
                          roff(page_name + "-" + each.name));
  }
  text += options(command);
  if (!command.footer.empty()) text += ".SH EXAMPLES\n.nf\n" + roff(command.footer) + "\n.fi\n";
  text +=
      path == "plimsoll"
          ? ".SH EXIT STATUS\n0 done; 2 usage or run file; 65 bad data or model files; 69 the plan does not "
            "fit the budget; 74 input or output; 75 stopped by a signal and saved; 76 diverged.\n"
          : "";
  text += fmt::format(".SH SEE ALSO\n\\fB{}\\fR\n", path == "plimsoll"
                                                        ? "plimsoll\\-run\\fR(5)"
                                                        : "plimsoll\\fR(1), \\fBplimsoll\\-run\\fR(5)");
  pages.emplace_back(page_name + ".1", std::move(text));
  for (const CommandText& each : command.commands) add_pages(each, path + " " + each.name, version, pages);
}

TextFile run_page(const std::string& version) {
  std::string text = heading("plimsoll-run", 5, version);
  text +=
      ".SH NAME\nplimsoll\\-run \\- run files of plimsoll\n.SH DESCRIPTION\n"
      "A run file is YAML: what is trained, on what, and how. A setting is written by its path, nested or "
      "with dots; the same "
      "names work on the command line as\n.IR name = value .\n.SH SETTINGS\n";
  const settings::RunConfig defaults;
  for (const settings::Setting& setting : settings::settings()) {
    if (setting.is_for_tests) continue;
    text += fmt::format(".TP\n\\fB{}\\fR\n{}. Takes {}; default: {}.\n", roff(setting.path),
                        roff(settings::setting_help(setting)), roff(settings::setting_type(setting)),
                        roff(settings::setting_text(setting, defaults)));
  }
  text += ".SH SEE ALSO\n\\fBplimsoll\\fR(1)\n";
  return {"plimsoll-run.5", std::move(text)};
}

}  // namespace

std::vector<TextFile> manual_pages(const CommandText& program, const std::string& version) {
  std::vector<TextFile> pages;
  add_pages(program, "plimsoll", version, pages);
  pages.push_back(run_page(version));
  return pages;
}

}  // namespace plimsoll::cli
