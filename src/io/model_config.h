// A model's config.json as raw fields with typed getters. Every error names the field, its value and what
// would be right. The families' own structs are made from this (models/decoder_config.h,
// models/gpt2_config.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::io {

/// The allowed range of a number, both ends included.
struct IntegerRange {
  int64_t least = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
};
struct NumberRange {
  double least = 0;
  double most = std::numeric_limits<double>::max();
};

/// The fields of a config.json. Getters remember what was asked for, so that `unread_fields` can name the
/// rest. Errors of all getters: kBadData, "config.json: hidden_size is -3, expected an integer from 1 to
/// 1048576".
class ConfigJson {
 public:
  /// `source` is the file or preset, used in messages.
  ConfigJson(Tree fields, std::string source) : fields_(std::move(fields)), source_(std::move(source)) {}

  [[nodiscard]] const Tree& fields() const { return fields_; }
  [[nodiscard]] const std::string& source() const { return source_; }
  /// The family: model_type, or what an entry of architectures implies. Errors: kBadData where neither says,
  /// or architectures names another head than a causal LM's or a classifier's of sequences or images. An
  /// image model may have none ("ViTModel"), an encoder of text none or any ("BertForMaskedLM").
  Result<std::string> model_type() const;
  /// Whether the field is there and not null.
  [[nodiscard]] bool has(std::string_view field) const;
  /// Sets or replaces a field (model.overrides).
  void set(std::string_view field, Tree value) { fields_.set(field, std::move(value)); }

  Result<int64_t> integer(std::string_view field, IntegerRange range) const;
  Result<int64_t> integer(std::string_view field, IntegerRange range, int64_t if_missing) const;
  Result<std::optional<int64_t>> optional_integer(std::string_view field, IntegerRange range) const;
  Result<double> number(std::string_view field, NumberRange range) const;
  Result<double> number(std::string_view field, NumberRange range, double if_missing) const;
  Result<bool> boolean(std::string_view field, bool if_missing) const;
  Result<std::string> string(std::string_view field) const;
  Result<std::string> string(std::string_view field, std::string_view if_missing) const;
  /// An integer or a list of integers (eos_token_id); missing or null is empty.
  Result<std::vector<int64_t>> integers(std::string_view field, IntegerRange range) const;
  /// A sub-object as a config of its own (rope_parameters); missing or null is nothing.
  Result<std::optional<ConfigJson>> object(std::string_view field) const;
  /// An error unless the field is missing, null or equal to `value`: for what changes the mathematics.
  Status require(std::string_view field, const Tree& value, std::string_view why) const;
  /// An error where any of the fields is there and not null: each would change the mathematics.
  Status require_absent(std::initializer_list<std::string_view> fields) const;
  /// Marks fields as known although nobody reads them.
  void ignore(std::initializer_list<std::string_view> fields) const;
  /// Fields that no getter asked for, in the file's order.
  [[nodiscard]] std::vector<std::string> unread_fields() const;

  /// Fields that a getter asked for, whether they are there or not: after a family's reader, all that it
  /// knows.
  [[nodiscard]] std::vector<std::string> known_fields() const { return {read_.begin(), read_.end()}; }

  /// "config.json: <field> is <value>, expected <expected>" with this config's source as the place.
  [[nodiscard]] Error error(std::string_view field, std::string_view expected, std::string hint = {}) const;

 private:
  const Tree* get(std::string_view field) const;
  Tree fields_;
  std::string source_;
  std::string within_;  ///< "rope_scaling." for what lies in that object: where an override reaches it
  mutable std::set<std::string, std::less<>> read_;
};

/// Reads a config.json of at most 32 MiB. Errors: kBadData (missing, no JSON, no object), kIo.
Result<ConfigJson> read_config_json(const std::string& path);
/// The same from text.
Result<ConfigJson> parse_config_json(std::string_view text, std::string source);

}  // namespace plimsoll::io
