// A model's config as llama.cpp knows it: the architecture, its sizes, and what each tensor is called and how
// its rows lie there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_file.h"
#include "io/model_config.h"
#include "models/rope_config.h"

namespace plimsoll::gguf {

/// How a tensor's rows are taken from the checkpoint's.
struct RowOrder {
  bool transposed = false;  ///< the checkpoint has [in, out]
  /// Rotary pairs stand side by side in llama.cpp's layout and half a head apart in the checkpoint's: row
  /// h·d + 2j + s is the checkpoint's h·d + s·d/2 + j. 0: as they are; else d, rows of a head.
  int64_t rotary_head = 0;
};

struct TensorPlace {
  std::string name;
  RowOrder rows = {};
};

class Architecture {
 public:
  /// Errors: kBadData where the config is none that the family takes; kInvalidArgument naming the family or
  /// the setting that llama.cpp has no place for.
  static Result<Architecture> create(const io::ConfigJson& config);

  [[nodiscard]] const std::string& name() const { return name_; }  ///< "llama", "qwen2", "gpt2", …
  [[nodiscard]] int64_t vocab_size() const { return vocab_size_; }
  /// Sizes, under the architecture's name.
  void describe(Metadata& metadata) const;
  /// Where a tensor of the checkpoint goes, by its name in transformers. Checked to exist.
  [[nodiscard]] TensorPlace place(std::string_view tensor) const;
  /// The factors by which llama3's scaling divides the frequencies, one a pair of a head; none without it.
  [[nodiscard]] const std::vector<float>& rope_factors() const { return rope_factors_; }
  /// Lines for people: what llama.cpp computes otherwise.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Entry {
    std::string key;
    enum class Kind : uint8_t { kU32, kF32, kText } kind;
    double number = 0;
    std::string text = {};
  };
  static Result<Architecture> of_decoder(const io::ConfigJson& config, const std::string& model_type);
  static Result<Architecture> of_gpt2(const io::ConfigJson& config);
  void u32(std::string_view key, int64_t value);
  void f32(std::string_view key, double value);
  void text(std::string_view key, std::string value);
  Status add_rope(const models::RopeConfig& rope, int64_t head_dim);

  std::string name_;
  int64_t vocab_size_ = 0;
  int64_t rotary_head_ = 0;  ///< of q and k; 0: they are not permuted
  bool is_gpt2_ = false;
  std::vector<Entry> entries_;
  std::vector<float> rope_factors_;
  std::vector<std::string> notes_;
};

}  // namespace plimsoll::gguf
