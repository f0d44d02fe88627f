// A run file as it is put together: settings, each with its value and why.
#pragma once

#include <string>
#include <vector>

namespace plimsoll::analysis {

class RunDraft {
 public:
  /// A dotted path, its value in YAML, and a comment; empty: none.
  void add(std::string path, std::string value, std::string why);
  /// Another value for a setting that stands there, or a line for it.
  void change(const std::string& path, const std::string& value, const std::string& why);
  /// The setting, or all of a section.
  void remove(const std::string& path);
  /// By sections, in the order in which they came first.
  [[nodiscard]] std::string yaml() const;

 private:
  struct Choice {
    std::string path, value, why;
  };
  static std::string section(const Choice& c);
  static std::string line(const Choice& c);

  std::vector<Choice> choices_;
};

}  // namespace plimsoll::analysis
