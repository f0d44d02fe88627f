#include "model_tools/rewrite_model.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "corpora/pad_token.h"
#include "io/atomic_directory.h"
#include "io/file.h"
#include "io/json.h"
#include "io/python_json.h"

namespace plimsoll::model_tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kRewriteBytes = size_t{1} << 20;
constexpr int64_t kMostConfigBytes = int64_t{32} << 20, kMostSideBytes = int64_t{256} << 20;

Status write_text(const io::AtomicDirectory& directory, const std::string& name, std::string_view text) {
  PLIMSOLL_ASSIGN(io::OutputFile out, directory.create_file(name));
  PLIMSOLL_TRY(out.write_at(0, std::as_bytes(std::span(text))));
  return out.close();
}

/// What stands beside weights and goes with them: tokenizer, templates, how to generate.
bool goes_along(const fs::path& path) {
  const std::string name = path.filename().string(), suffix = path.extension().string();
  if (name.starts_with('.') || name == "config.json" || name.ends_with(".index.json")) return false;
  return suffix == ".json" || suffix == ".model" || suffix == ".txt" || suffix == ".jinja";
}

bool is_tokenizer_file(const std::string& name) {
  constexpr std::string_view kNames[] = {"tokenizer.json",
                                         "tokenizer_config.json",
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "vocab.json",
                                         "merges.txt",
                                         "vocab.txt",
                                         "tokenizer.model",
                                         "sentencepiece.bpe.model",
                                         "spiece.model",
                                         "chat_template.jinja"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

/// Whether the folder could be written, before anything is computed for it.
Status check_new_folder(const std::string& output) {
  auto probe = io::AtomicDirectory::create(output);
  if (!probe) return std::move(probe).error();
  return Ok{};
}

class ModelRewriter {
 public:
  ModelRewriter(const io::ModelWeights& weights, const std::string& output, TensorRewrite& rewrite)
      : weights_(weights), output_(output), rewrite_(rewrite) {}

  Result<RewriteReport> operator()() {
    PLIMSOLL_ASSIGN(io::AtomicDirectory directory, io::AtomicDirectory::create(output_));
    for (const io::SafetensorsFile& file : weights_.files()) PLIMSOLL_TRY(write_file(file, directory));
    PLIMSOLL_TRY(write_config(directory));
    PLIMSOLL_TRY(copy_others(directory));
    PLIMSOLL_TRY(write_index(directory));
    PLIMSOLL_TRY(rewrite_.prove(directory.hidden_path()));
    PLIMSOLL_TRY(directory.publish());
    return report_;
  }

 private:
  Status write_file(const io::SafetensorsFile& file, const io::AtomicDirectory& directory) {
    const std::string name = fs::path(file.path()).filename().string();
    std::vector<io::SafetensorsEntry> entries;
    std::vector<size_t> counts;
    for (const io::SafetensorsTensor& tensor : file.tensors()) {
      std::vector<io::SafetensorsEntry> own = rewrite_.entries({&file, &tensor});
      counts.push_back(own.size());
      for (io::SafetensorsEntry& entry : own) {
        index_.emplace_back(entry.name, io::Tree::of(name));
        entries.push_back(std::move(entry));
      }
    }
    PLIMSOLL_ASSIGN(const io::SafetensorsLayout layout,
                    io::SafetensorsLayout::create(entries, {{"format", "pt"}}));
    PLIMSOLL_ASSIGN(io::OutputFile out, directory.create_file(name));
    PLIMSOLL_TRY(out.reserve(layout.file_bytes()));
    PLIMSOLL_TRY(out.write_at(0, std::as_bytes(std::span(layout.header))));
    std::vector<int64_t> at = layout.ends;
    for (int64_t& byte : at) byte += layout.header_bytes();
    size_t first = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      PLIMSOLL_TRY(rewrite_.write({&file, &file.tensors()[i]}, std::span(at).subspan(first, counts[i]), out));
      first += counts[i];
    }
    report_.num_read += static_cast<int64_t>(counts.size());
    report_.num_written += static_cast<int64_t>(entries.size());
    report_.bytes_before += file.size_bytes();
    report_.bytes += layout.file_bytes();
    payload_bytes_ += layout.ends.back();
    return out.close();
  }

  Status write_config(const io::AtomicDirectory& directory) const {
    const std::string path = weights_.directory() + "/config.json";
    PLIMSOLL_ASSIGN(const io::ConfigJson config, io::read_config_json(path));
    PLIMSOLL_ASSIGN(std::string text, io::read_small_file(path, kMostConfigBytes));
    PLIMSOLL_ASSIGN(text, rewrite_.config(config, std::move(text)));
    if (corpora::lacks_pad_token(config)) {
      PLIMSOLL_ASSIGN(text, with_pad_token(config, std::move(text)));
    }
    return write_text(directory, "config.json", text);
  }

  /// transformers runs no batch of a classifier without one.
  [[nodiscard]] Result<std::string> with_pad_token(const io::ConfigJson& config, std::string text) const {
    auto encoder = corpora::EncoderFiles::open(weights_.directory());
    if (!encoder && encoder.error().code == ErrorCode::kIo) return std::move(encoder).error();
    if (!encoder) return text;  // without a tokenizer it is for others to say
    PLIMSOLL_ASSIGN(const auto token, corpora::pad_token_for(*encoder, config));
    return token ? with_member(std::move(text), "pad_token_id", std::to_string(*token)) : text;
  }

  Status copy_others(const io::AtomicDirectory& directory) const {
    const std::string& tokenizer = rewrite_.tokenizer_folder();
    const bool has_own = !tokenizer.empty();
    PLIMSOLL_TRY(copy_from(weights_.directory(), directory,
                           [&](const std::string& name) { return !has_own || !is_tokenizer_file(name); }));
    return has_own ? copy_from(tokenizer, directory, is_tokenizer_file) : Status(Ok{});
  }

  Status copy_from(const std::string& folder, const io::AtomicDirectory& directory,
                   const std::function<bool(const std::string&)>& takes) const {
    std::error_code code;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
      const std::string name = it->path().filename().string();
      if (!goes_along(it->path()) || !takes(name) || !io::is_file(it->path().string())) continue;
      PLIMSOLL_ASSIGN(std::string text, io::read_small_file(it->path().string(), kMostSideBytes));
      PLIMSOLL_ASSIGN(text, rewrite_.beside(name, std::move(text)));
      PLIMSOLL_TRY(write_text(directory, name, text));
    }
    return code ? Status(io::io_error("the folder cannot be read", folder, code.value())) : Ok{};
  }

  /// Where the name of the one file does not say it.
  Status write_index(const io::AtomicDirectory& directory) {
    const auto& files = weights_.files();
    if (files.size() == 1 && fs::path(files[0].path()).filename() == "model.safetensors") return Ok{};
    const io::Tree index =
        io::Tree::map({{"metadata", io::Tree::map({{"total_size", io::Tree::of(payload_bytes_)}})},
                       {"weight_map", io::Tree::map(std::move(index_))}});
    return write_text(directory, "model.safetensors.index.json", io::to_json(index) + "\n");
  }

  const io::ModelWeights& weights_;
  const std::string& output_;
  TensorRewrite& rewrite_;
  std::vector<std::pair<std::string, io::Tree>> index_;
  int64_t payload_bytes_ = 0;
  RewriteReport report_;
};

}  // namespace

std::vector<io::SafetensorsEntry> TensorRewrite::entries(const io::WeightRef& ref) const {
  return {{ref.tensor->name, ref.tensor->dtype, ref.tensor->shape}};
}

Status TensorRewrite::write(const io::WeightRef& ref, std::span<const int64_t> at, io::OutputFile& out) {
  const int64_t bytes = ref.tensor->bytes;
  std::vector<std::byte> buffer(std::min(kRewriteBytes, static_cast<size_t>(bytes)));
  for (int64_t done = 0; done < bytes; done += static_cast<int64_t>(buffer.size())) {
    const auto piece = std::span(buffer).first(std::min(buffer.size(), static_cast<size_t>(bytes - done)));
    PLIMSOLL_TRY(ref.file->read(*ref.tensor, done, piece));
    PLIMSOLL_TRY(out.write_at(at[0] + done, piece));
  }
  return Ok{};
}

Result<std::string> TensorRewrite::config(const io::ConfigJson& /*config*/, std::string text) const {
  return text;
}

Result<std::string> TensorRewrite::beside(const std::string& /*name*/, std::string text) const {
  return text;
}

Status TensorRewrite::prove(const std::string& /*written*/) { return Ok{}; }

Status check_rewrite_output(const std::string& source, const std::string& output, const std::string& what) {
  std::error_code code;
  if (!fs::exists(output, code)) return check_new_folder(output);
  if (fs::equivalent(output, source, code))
    return Error{ErrorCode::kInvalidArgument, "the " + what + " would overwrite its source", output,
                 "name another --output"};
  if (fs::is_directory(output, code) && fs::is_empty(output, code)) return check_new_folder(output);
  return Error{ErrorCode::kInvalidArgument, "the output exists already", output,
               "name another --output, or move it away"};
}

Result<RewriteReport> rewrite_model(const io::ModelWeights& weights, const std::string& output,
                                    TensorRewrite& rewrite) {
  return ModelRewriter(weights, output, rewrite)();
}

std::string with_member(std::string text, const std::string& name, const std::string& value) {
  auto fields = io::parse_json(text);
  if (fields && fields->find(name) != nullptr) {  // null too: it would stand there twice
    std::erase_if(fields->members, [&](const auto& member) { return member.first == name; });
    text = io::to_python_json(*fields) + "\n";
  }
  if (value.empty()) return text;
  text.resize(text.rfind('}'));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
  return text + (text.ends_with('{') ? "" : ",") + "\n  \"" + name + "\": " + value + "\n}\n";
}

std::string with_quantization(std::string text, const std::string& quantization) {
  return with_member(std::move(text), "quantization_config", quantization);
}

}  // namespace plimsoll::model_tools
