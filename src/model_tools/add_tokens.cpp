#include "model_tools/add_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "base/units.h"
#include "io/adapter_folder.h"
#include "io/json.h"
#include "io/tensor_convert.h"
#include "model_tools/rewrite_model.h"
#include "models/language_model.h"
#include "numerics/convert.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::model_tools {
namespace {

constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr int64_t kMostTokenizerBytes = int64_t{256} << 20;

io::Tree token_tree(int64_t id, const std::string& content, bool special) {
  return io::Tree::map({{"id", io::Tree::of(id)},
                        {"content", io::Tree::of(content)},
                        {"single_word", io::Tree::of(false)},
                        {"lstrip", io::Tree::of(false)},
                        {"rstrip", io::Tree::of(false)},
                        {"normalized", io::Tree::of(!special)},
                        {"special", io::Tree::of(special)}});
}

class TokenAdder : public TensorRewrite {
 public:
  explicit TokenAdder(const AddTokensRequest& request) : request_(request) {}

  Result<AddTokensReport> operator()() {
    const auto start = std::chrono::steady_clock::now();
    PLIMSOLL_ASSIGN(folder_, io::find_whole_model(request_.model));
    PLIMSOLL_TRY(check_request());
    PLIMSOLL_TRY(check_rewrite_output(folder_, request_.output, "model"));
    PLIMSOLL_ASSIGN(const io::ModelWeights weights, io::ModelWeights::open(folder_));
    PLIMSOLL_TRY(read_tokenizer());
    PLIMSOLL_TRY(find_rows());
    PLIMSOLL_TRY(rewrite_model(weights, request_.output, *this));
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report_;
  }

  [[nodiscard]] std::vector<io::SafetensorsEntry> entries(const io::WeightRef& ref) const override {
    std::vector<io::SafetensorsEntry> list = TensorRewrite::entries(ref);
    if (grows(ref)) list[0].shape[0] = report_.rows;
    return list;
  }

  Status write(const io::WeightRef& ref, std::span<const int64_t> at, io::OutputFile& out) override {
    PLIMSOLL_TRY(TensorRewrite::write(ref, at, out));
    return grows(ref) ? write_means(ref, at[0] + ref.tensor->bytes, out) : Status(Ok{});
  }

  [[nodiscard]] Result<std::string> config(const io::ConfigJson& /*config*/,
                                           std::string text) const override {
    return report_.rows == report_.rows_before
               ? std::move(text)
               : with_member(std::move(text), "vocab_size", std::to_string(report_.rows));
  }

  [[nodiscard]] std::string tokenizer_folder() const override { return request_.tokenizer; }

  [[nodiscard]] Result<std::string> beside(const std::string& name, std::string text) const override {
    return name == kTokenizerFile && !added_.empty() ? io::to_json(document_) + "\n" : std::move(text);
  }

  /// Each new token is one id in a text.
  Status prove(const std::string& written) override {
    PLIMSOLL_ASSIGN(const auto tokenizer, tokenizers::Tokenizer::open(written));
    for (const auto& [token, id] : added_)
      if (tokenizer->id_of(token) != std::optional(static_cast<int32_t>(id)))
        return Error{ErrorCode::kBadData, fmt::format("'{}' does not become token {}", token, id), folder_,
                     "add it with transformers: tokenizer.add_tokens"};
    return Ok{};
  }

 private:
  [[nodiscard]] Status check_request() const {
    if (request_.multiple_of < 1)
      return Error{ErrorCode::kInvalidArgument, "the rows cannot be a multiple of less than 1",
                   "--multiple-of", "give 1 or more, such as 64"};
    std::set<std::string> seen;
    for (const auto* list : {&request_.tokens, &request_.special_tokens})
      for (const std::string& token : *list)
        if (token.empty() || !seen.insert(token).second)
          return Error{ErrorCode::kInvalidArgument,
                       token.empty() ? "a token is empty" : fmt::format("'{}' is named twice", token),
                       "--token", "name each token once"};
    if (seen.empty() && request_.tokenizer.empty())
      return Error{ErrorCode::kInvalidArgument, "no token is named", "--token",
                   "name tokens with --token or --special-token, or a tokenizer with --tokenizer"};
    return Ok{};
  }

  Status read_tokenizer() {
    const std::string& from = request_.tokenizer.empty() ? folder_ : request_.tokenizer;
    const std::string path = from + "/" + kTokenizerFile;
    if (!io::is_file(path))
      return Error{ErrorCode::kBadData, "there is no tokenizer.json", from,
                   "write one: transformers' AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"};
    PLIMSOLL_ASSIGN(const auto tokenizer, tokenizers::Tokenizer::open(from));
    report_.num_tokens = tokenizer->vocab_size();
    PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(path, kMostTokenizerBytes));
    PLIMSOLL_ASSIGN(document_, io::parse_json(text, {.max_bytes = kMostTokenizerBytes,
                                                     .max_nodes = kMostTokenizerBytes}));
    const io::Tree* listed = document_.find("added_tokens");
    io::Tree tokens = listed != nullptr && !listed->is_null() ? *listed : io::Tree::list();
    add_named(*tokenizer, tokens);
    for (const auto& [list, special] : {std::pair(&request_.tokens, false), {&request_.special_tokens, true}})
      for (const std::string& token : *list) {
        if (const auto id = tokenizer->id_of(token))
          return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is token {} already", token, *id), from,
                       "leave it out"};
        tokens.items.push_back(token_tree(report_.num_tokens, token, special));
        added_.emplace_back(token, report_.num_tokens++);
      }
    report_.num_added = static_cast<int64_t>(added_.size());
    document_.set("added_tokens", std::move(tokens));
    return Ok{};
  }

  /// Tokens that stand outside of tokenizer.json, which new ones would push to other ids.
  static void add_named(const tokenizers::Tokenizer& tokenizer, io::Tree& tokens) {
    std::set<std::string, std::less<>> listed;
    for (const io::Tree& token : tokens.items)
      if (const io::Tree* content = token.find("content")) listed.insert(content->text);
    for (const int32_t id : tokenizer.added_ids())
      if (const std::string content(tokenizer.token(id)); !listed.contains(content))
        tokens.items.push_back(token_tree(id, content, tokenizer.is_special(id)));
  }

  /// The embedding, and the head beside it: by their names in the files of models and of bare ones.
  Status find_rows() {
    PLIMSOLL_ASSIGN(const io::ConfigJson config, io::read_config_json(folder_ + "/config.json"));
    PLIMSOLL_ASSIGN(const auto model, models::make_language_model(config));
    report_.rows_before = model->vocab_size();
    report_.rows = std::max(report_.rows_before, round_up(report_.num_tokens, request_.multiple_of));
    const auto add = [&](std::string_view name) {
      grown_.emplace(name);
      const std::string_view prefix = model->base_prefix();
      if (name.starts_with(prefix)) grown_.emplace(name.substr(prefix.size()));
    };
    bool is_first_table = true;
    for (const models::Parameter& p : model->parameters()) {
      const bool is_table = p.kind == models::ParameterKind::kTable;
      const bool is_head =
          p.kind == models::ParameterKind::kLinear && p.block < 0 && !model->is_of_head(p.views[0].name);
      if ((is_table && is_first_table) || is_head) add(p.views[0].name);
      is_first_table = is_first_table && !is_table;
    }
    if (const auto tied = model->tied_head()) add(tied->head);
    return Ok{};
  }

  [[nodiscard]] bool grows(const io::WeightRef& ref) const {
    return report_.rows > report_.rows_before && grown_.contains(ref.tensor->name) &&
           ref.tensor->shape.size() == 2 && ref.tensor->shape[0] == report_.rows_before;
  }

  /// The mean of the rows, in the tensor's dtype, as often as there are new ones.
  [[nodiscard]] Status write_means(const io::WeightRef& ref, int64_t at, io::OutputFile& out) const {
    const auto stored = io::float_format(ref.tensor->dtype);
    if (!stored || *stored == io::FloatFormat::kF64)
      return Error{ErrorCode::kBadData,
                   fmt::format("{} is {}, expected F32, BF16 or F16", ref.tensor->name, ref.tensor->dtype),
                   folder_, "save the model in one of these"};
    const int64_t columns = ref.tensor->shape[1], row_bytes = columns * io::element_bytes(*stored);
    std::vector<std::byte> row(static_cast<size_t>(row_bytes));
    std::vector<float> values(static_cast<size_t>(columns));
    std::vector<double> sums(static_cast<size_t>(columns));
    for (int64_t i = 0; i < report_.rows_before; ++i) {
      PLIMSOLL_TRY(ref.file->read(*ref.tensor, i * row_bytes, row));
      io::convert_to_f32(*stored, row.data(), values.data(), columns);
      for (size_t c = 0; c < sums.size(); ++c) sums[c] += values[c];
    }
    for (size_t c = 0; c < sums.size(); ++c)
      values[c] = static_cast<float>(sums[c] / static_cast<double>(report_.rows_before));
    numerics::encode(*stored == io::FloatFormat::kBf16  ? numerics::Format::kBf16
                     : *stored == io::FloatFormat::kF16 ? numerics::Format::kFp16
                                                        : numerics::Format::kFp32,
                     values, row);
    for (int64_t i = report_.rows_before; i < report_.rows; ++i, at += row_bytes)
      PLIMSOLL_TRY(out.write_at(at, row));
    return Ok{};
  }

  const AddTokensRequest& request_;
  std::string folder_;
  io::Tree document_;  ///< tokenizer.json with the new tokens
  std::vector<std::pair<std::string, int64_t>> added_;
  std::set<std::string, std::less<>> grown_;  ///< tensors that have a row a token
  AddTokensReport report_;
};

}  // namespace

Result<AddTokensReport> add_tokens(const AddTokensRequest& request) { return TokenAdder(request)(); }

}  // namespace plimsoll::model_tools
