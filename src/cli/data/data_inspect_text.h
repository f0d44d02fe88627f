// Files of text as a run would see them: tokenized and masked for data inspect, into a folder that nobody
// keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"
#include "cli/data/data_files.h"
#include "corpora/encoder_files.h"
#include "corpora/tokenize.h"
#include "io/scratch_folder.h"
#include "settings/run_config.h"

namespace plimsoll::cli {

/// How texts become tokens: by options, else by a run file, else as runs do by default.
struct TextArguments {
  std::string run;
  std::string tokenizer;
  std::string chat_template;
  std::string loss, append_eos, text_key, on_error;  ///< empty: not given
  int64_t max_documents = 0;
};
void add_text_options(Parser command, TextArguments& arguments);

/// Makes shards of texts, one each.
class TextInspection {
 public:
  /// Reads the run file, where there is one, and puts the options over it. Errors: as load_run_config.
  static Result<TextInspection> create(const TextArguments& arguments);

  /// The files of the run; empty without one.
  [[nodiscard]] std::vector<std::string> run_files() const;
  /// "bytes", where the tokenizer lies, or empty where nothing names one.
  [[nodiscard]] const std::string& tokenizer() const { return tokenizer_; }
  /// Whether such a file is tokenized, not read as it lies there.
  [[nodiscard]] bool tokenizes(const std::string& path) const;
  /// The file tokenized; it is there as long as this is. Errors: as write_tokens and EncoderFiles::open;
  /// kInvalidArgument where no tokenizer is named.
  Result<DataFile> open(const std::string& path);
  /// Over all files that were opened.
  [[nodiscard]] const corpora::TokenizeCounts& counts() const { return counts_; }

 private:
  TextInspection() = default;
  settings::DataSettings data_;
  bool has_run_ = false;
  std::string tokenizer_;
  int64_t max_documents_ = 0;
  std::optional<corpora::EncoderFiles> files_;
  std::optional<io::ScratchFolder> folder_;
  int64_t num_shards_ = 0;
  corpora::TokenizeCounts counts_;
};

}  // namespace plimsoll::cli
