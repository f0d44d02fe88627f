// The run file as text: sections in the order of the settings, a comment on each line, then the keys that
// have no line.
#include <fmt/format.h>

#include <algorithm>

#include "importing/import.h"
#include "settings/settings.h"

namespace plimsoll::importing {
namespace {

/// Comments end with their line, and nothing in them reaches a terminal.
std::string one_line(std::string_view text, size_t most = 160) {
  std::string out;
  for (const char c : text.substr(0, most))
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  while (!out.empty() && (out.back() & 0xC0) == 0x80 && text.size() > most) out.pop_back();
  if (text.size() > most) {
    if (!out.empty() && (out.back() & 0x80) != 0) out.pop_back();
    out += "…";
  }
  return out;
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  /// "training.lr_scheduler_kwargs.power": its sections are opened where they are not open.
  void line(const std::string& path, const std::string& value, const std::string& comment, bool is_comment) {
    size_t depth = 0, begin = 0;
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
      open(depth++, path.substr(begin, dot - begin));
      begin = dot + 1;
    }
    const std::string text = fmt::format("{}{}{}: {}", std::string(2 * depth, ' '), is_comment ? "# " : "",
                                         path.substr(begin), value);
    out_ += fmt::format("{:<42} # {}\n", text, one_line(comment));
    sections_.resize(depth);
  }

 private:
  void open(size_t depth, const std::string& name) {
    if (depth < sections_.size() && sections_[depth] == name) return;
    sections_.resize(depth);
    sections_.push_back(name);
    out_ += fmt::format("{}{}:\n", std::string(2 * depth, ' '), name);
  }

  std::string& out_;
  std::vector<std::string> sections_;
};

/// A section that holds comments alone would be null.
bool has_line(const Draft& draft, const std::string& section) {
  return std::any_of(draft.lines().begin(), draft.lines().end(), [&](const auto& line) {
    return line.first.starts_with(section + ".") && !line.second.is_waiting;
  });
}

void add_settings(const Draft& draft, std::string& out) {
  Writer writer(out);
  for (const settings::Setting& setting : settings::settings()) {
    if (const Line* line = draft.line(setting.path)) {
      writer.line(setting.path, io::to_yaml_flow(line->value), line->comment, line->is_waiting);
    } else if (const auto why = draft.to_fill_in().find(setting.path); why != draft.to_fill_in().end()) {
      const std::string section = setting.path.substr(0, setting.path.find('.'));
      if (has_line(draft, section))
        writer.line(setting.path, "…", "FILL IN: " + why->second, /*is_comment=*/true);
      else
        out += fmt::format("{:<42} # {}\n",
                           fmt::format("# {}: {{{}: …}}", section, setting.path.substr(section.size() + 1)),
                           one_line("FILL IN: " + why->second));
    }
  }
}

void add_keys(const std::vector<KeyReport>& keys, Fate fate, std::string_view title, std::string& out) {
  const auto count =
      std::count_if(keys.begin(), keys.end(), [&](const KeyReport& k) { return k.fate == fate; });
  if (count == 0) return;
  out += fmt::format("\n# {} ({}):\n", title, count);
  for (const KeyReport& report : keys)
    if (report.fate == fate)
      out += fmt::format("{:<42} # {}\n",
                         fmt::format("#   {}: {}", one_line(report.key.name, 60),
                                     one_line(io::to_yaml_flow(shown_value(report.key)), 60)),
                         one_line(report.note));
}

}  // namespace

std::string run_file_text(const Draft& draft, const std::vector<KeyReport>& keys) {
  std::string out = "# Made by plimsoll import of";
  for (const Source& source : draft.sources())
    out += fmt::format(" {} ({})", one_line(source.file, 80), name_of(source.dialect));
  out += ".\n# Beside each setting stands the key that it comes from.\n\n";
  add_settings(draft, out);
  add_keys(keys, Fate::kNoEqual, "Not supported, and what that changes", out);
  add_keys(keys, Fate::kHarmless, "Without effect: the run is the same without them", out);
  return out;
}

}  // namespace plimsoll::importing
