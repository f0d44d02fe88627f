// A run file in the making: what is mapped so far, and what became of each key of the source.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importing/source.h"
#include "settings/run_config.h"

namespace plimsoll::importing {

/// What became of a key.
enum class Fate {
  kMapped,    ///< a setting says the same
  kHarmless,  ///< without it the run means the same
  kNoEqual,   ///< not available here: the note says what differs
};
std::string_view name_of(Fate fate);

struct KeyReport {
  SourceKey key = {};
  Fate fate = Fate::kNoEqual;
  std::string setting = {};  ///< "training.learning_rate"; empty where none has to do with it
  std::string note = {};
};

/// A line of the run file.
struct Line {
  io::Tree value = {};
  std::string comment = {};
  std::vector<size_t> keys = {};  ///< the reports that stand behind it
  bool is_default = false;        ///< the source's own default
  bool is_other = false;          ///< a default that has no equal: the nearest stands for it
  bool is_waiting = false;        ///< written as a comment: it takes data that has still to be named
};

class Draft {
 public:
  explicit Draft(std::vector<Source> sources);

  /// The key of that pattern, from the source that comes first; nothing where it is absent, null or "auto".
  [[nodiscard]] const SourceKey* find(std::string_view pattern) const;
  /// The same, of one dialect.
  [[nodiscard]] const SourceKey* find(Dialect dialect, std::string_view pattern) const;
  [[nodiscard]] bool has_dialect(Dialect dialect) const;
  [[nodiscard]] const std::vector<Source>& sources() const { return sources_; }

  // What becomes of a key; the first answer stays.
  /// `words`: the setting's value, or several between commas, the first that this version has; behind '!'
  /// what is not the same. A value that the setting cannot take is an error of the key.
  void map(const SourceKey& key, const std::string& setting, const io::Tree& value,
           const std::string& note = {});
  void map_words(const SourceKey& key, const std::string& setting, std::string_view words,
                 const std::string& note = {});
  void harmless(const SourceKey& key, std::string note);
  void no_equal(const SourceKey& key, std::string note, const std::string& setting = {});
  /// Whether this version has the setting, and with that value.
  [[nodiscard]] bool can_take(const std::string& setting, const io::Tree& value) const;
  void wrong(const SourceKey& key, std::string_view expected, std::string hint = {});
  [[nodiscard]] bool is_accounted(const SourceKey& key) const;
  /// For a key that goes into a line which another wrote.
  void joined(const SourceKey& key, const std::string& setting, std::string note);

  /// A line that no single key says: computed from several, or a default of the source's (unless there is a
  /// line of that setting, or it was decided that there is none). `words` as map_words.
  void set(const std::string& setting, const io::Tree& value, const std::string& comment);
  void set_default(const std::string& setting, std::string_view words, const std::string& comment);
  /// No line of that setting: what the source asks for has no equal, and a default would be none of it.
  void leave_out(const std::string& setting) { left_out_.insert(setting); }
  void fill_in(const std::string& setting, const std::string& why) { fill_in_[setting] = why; }
  [[nodiscard]] bool has(const std::string& setting) const { return lines_.contains(setting); }
  [[nodiscard]] const Line* line(const std::string& setting) const;

  /// Lines that have no effect beside the others are harmless and go; those of evaluation wait for its data.
  void settle();

  /// The lines of the best model wait: what they compare or go back to is not there.
  void leave_the_best_model();

  [[nodiscard]] const std::map<std::string, Line>& lines() const { return lines_; }
  [[nodiscard]] const std::vector<KeyReport>& reports() const { return reports_; }
  [[nodiscard]] const std::map<std::string, std::string>& to_fill_in() const { return fill_in_; }
  [[nodiscard]] std::vector<Error>& errors() { return errors_; }

 private:
  struct Choice {
    io::Tree value;
    bool is_equal = true;
  };
  [[nodiscard]] std::optional<Choice> first_available(const std::string& setting,
                                                      std::string_view words) const;
  KeyReport* report(const SourceKey& key, Fate fate, const std::string& setting, std::string note);
  void write(const SourceKey& key, const std::string& setting, const io::Tree& value, const std::string& note,
             Fate fate);
  static void wait(Line& line, const std::string& for_what);
  void drop(const std::string& setting, const std::string& note);

  std::vector<Source> sources_;
  std::map<std::string, Line> lines_;
  std::vector<KeyReport> reports_;
  std::set<std::pair<std::string, std::string>> accounted_;
  std::set<std::string> left_out_;
  std::map<std::string, std::string> fill_in_;
  std::vector<Error> errors_;
};

/// A number, also where it is written as text ("2e-5"); nothing where it is none.
std::optional<double> number_in(const io::Tree& value);
/// true or false; null is nothing.
std::optional<bool> bool_in(const io::Tree& value);

}  // namespace plimsoll::importing
