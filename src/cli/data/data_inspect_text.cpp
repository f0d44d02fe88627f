#include "cli/data/data_inspect_text.h"

#include <fmt/format.h>

#include <utility>

#include "base/numbers.h"
#include "base/process.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "corpora/text_input.h"
#include "preprocessing/data_files.h"
#include "preprocessing/run_data.h"
#include "preprocessing/run_task.h"
#include "preprocessing/template_date.h"
#include "preprocessing/token_cache.h"
#include "settings/settings.h"

namespace plimsoll::cli {
namespace {

using preprocessing::FileKind;

/// `text` where it was given.
void put_over(std::string& field, const std::string& text) {
  if (!text.empty()) field = text;
}

const char* kind_name(const std::string& path) {
  if (preprocessing::kind_of(path) != FileKind::kJson) return "text";
  if (path.ends_with(".parquet")) return "Parquet";
  if (path.ends_with(".arrow")) return "Arrow";
  return path.find(".csv") != path.npos || path.find(".tsv") != path.npos ? "CSV" : "JSON lines";
}

void add(corpora::TokenizeCounts& all, const corpora::TokenizeCounts& more) {
  all.num_examples += more.num_examples;
  all.num_empty += more.num_empty;
  all.text_bytes += more.text_bytes;
  all.skipped.add(more.skipped);
  all.remarks.add(more.remarks);
}

}  // namespace

void add_text_options(Parser c, TextArguments& a) {
  c.add_option("--run", a.run,
               "use the tokenizer, template and loss of this run file, and its files if none is named")
      .type_name("RUN.yaml");
  c.add_option("--tokenizer", a.tokenizer,
               "a model's folder, a tokenizer.json, or a Hub id that is already cached")
      .type_name("DIR|FILE");
  c.add_option("--chat-template", a.chat_template, "chat template for conversations instead of the model's")
      .type_name("FILE");
  c.add_option("--loss", a.loss, "tokens that count in the loss (auto)")
      .one_of({"auto", "all", "completions", "assistant", "all_assistant", "trl"});
  c.add_option("--append-eos", a.append_eos, "where to append the end-of-text token (auto)")
      .one_of({"auto", "true", "false", "trl"});
  c.add_option("--text-key", a.text_key, "member of a JSON line that holds the text").type_name("NAME");
  c.add_option("--on-error", a.on_error, "unusable examples: stop, or skip and count them (fail)")
      .one_of({"fail", "skip"});
  c.add_option("--max-documents", a.max_documents, "only the first N documents of each file")
      .range(1, int64_t{1} << 40);
}

Result<TextInspection> TextInspection::create(const TextArguments& a) {
  TextInspection inspection;
  inspection.has_run_ = !a.run.empty();
  if (inspection.has_run_) {
    PLIMSOLL_ASSIGN(const settings::RunConfig config, settings::load_run_config(a.run, {}));
    inspection.data_ = config.data;
    if (preprocessing::masks_tokens(config) && !config.data.add_special_tokens)
      inspection.data_.add_special_tokens = true;
    PLIMSOLL_ASSIGN(inspection.tokenizer_, preprocessing::tokenizer_path(config));
  }
  put_over(inspection.tokenizer_, a.tokenizer);
  put_over(inspection.data_.chat_template, a.chat_template);
  put_over(inspection.data_.loss, a.loss);
  put_over(inspection.data_.append_eos, a.append_eos);
  put_over(inspection.data_.text_key, a.text_key);
  put_over(inspection.data_.on_error, a.on_error);
  inspection.max_documents_ = a.max_documents;
  return inspection;
}

std::vector<std::string> TextInspection::run_files() const {
  std::vector<std::string> files;
  if (!has_run_) return files;
  for (const auto* patterns : {&data_.train, &data_.eval.files})
    files.insert(files.end(), patterns->begin(), patterns->end());
  return files;
}

bool TextInspection::tokenizes(const std::string& path) const {
  const FileKind kind = preprocessing::kind_of(path);
  return kind == FileKind::kJson || (kind == FileKind::kText && has_run_ && tokenizer_ != "bytes");
}

Result<DataFile> TextInspection::open(const std::string& path) {
  if (tokenizer_.empty() || tokenizer_ == "bytes")
    return Error{ErrorCode::kInvalidArgument, "this is text, and no tokenizer is named", path,
                 "name a model's folder (--tokenizer DIR) or a run file (--run RUN.yaml)"};
  if (!files_) {
    PLIMSOLL_ASSIGN(
        corpora::EncoderFiles files,
        corpora::EncoderFiles::open(tokenizer_, data_.chat_template, preprocessing::template_now(data_)));
    files_.emplace(std::move(files));
    PLIMSOLL_ASSIGN(io::ScratchFolder folder, io::ScratchFolder::create("inspect"));
    folder_.emplace(std::move(folder));
  }
  PLIMSOLL_ASSIGN(
      corpora::TextInput input,
      corpora::TextInput::open(*files_, {&path, 1}, preprocessing::text_options(data_, /*masks=*/false)));
  const std::string shard = fmt::format("{}/{}.shard", folder_->path(), num_shards_++);
  PLIMSOLL_ASSIGN(corpora::TokenOutput output, corpora::TokenOutput::create(shard, input.shard));
  Progress progress;
  corpora::TokenizeOptions options{.max_documents = max_documents_, .num_threads = num_available_cpus()};
  options.stop = [] { return stop_requested() != 0; };
  options.progress = [&](const corpora::TokenizeCounts& counts) {
    const double whole = static_cast<double>(counts.total_bytes);
    progress.show(whole > 0 ? static_cast<double>(counts.bytes_read) / whole : 1,
                  fmt::format("{} tokens", grouped(counts.num_tokens)));
  };
  PLIMSOLL_ASSIGN(const corpora::TokenizeCounts counts, corpora::write_tokens(input, output, options));
  add(counts_, counts);
  return DataFile::open_as(shard, path, kind_name(path));
}

}  // namespace plimsoll::cli
