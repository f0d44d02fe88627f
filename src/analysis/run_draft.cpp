#include "analysis/run_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plimsoll::analysis {

void RunDraft::add(std::string path, std::string value, std::string why) {
  choices_.push_back({std::move(path), std::move(value), std::move(why)});
}

void RunDraft::change(const std::string& path, const std::string& value, const std::string& why) {
  const auto found = std::ranges::find(choices_, path, &Choice::path);
  if (found == choices_.end()) return add(path, value, why);
  found->value = value;
  found->why = why;
}

void RunDraft::remove(const std::string& path) {
  std::erase_if(choices_, [&](const Choice& c) { return c.path == path || c.path.starts_with(path + "."); });
}

std::string RunDraft::yaml() const {
  std::vector<std::string> sections;
  for (const Choice& c : choices_)
    if (const std::string name = section(c); std::ranges::find(sections, name) == sections.end())
      sections.push_back(name);
  std::string out;
  for (const std::string& name : sections) {
    if (!name.empty()) out += name + ":\n";
    for (const Choice& c : choices_)
      if (section(c) == name) out += line(c);
  }
  return out;
}

/// Of "task" none, and of "training.state.moments", which stands with its whole name.
std::string RunDraft::section(const Choice& c) {
  const size_t dot = c.path.find('.');
  return dot == std::string::npos || dot != c.path.rfind('.') ? "" : c.path.substr(0, dot);
}

std::string RunDraft::line(const Choice& c) {
  const std::string name = section(c);
  const std::string text = name.empty() ? fmt::format("{}: {}", c.path, c.value)
                                        : fmt::format("  {}: {}", c.path.substr(name.size() + 1), c.value);
  return c.why.empty() ? text + "\n" : fmt::format("{:<34} # {}\n", text, c.why);
}

}  // namespace plimsoll::analysis
