// Settings that say nothing about a kind of data: told, lest somebody waits for what they do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "preprocessing/data_files.h"

namespace plimsoll::preprocessing {
namespace {

struct Kind {
  std::string name;
  FileKind kind;
  bool tokenized_here;
  bool has_documents;
};

/// Those that are not as they are by default.
std::vector<std::string> idle_for(const Kind& kind, const settings::DataSettings& data) {
  const settings::DataSettings usual;
  const bool conversations = kind.kind == FileKind::kJson;
  std::vector<std::string> names;
  const auto add = [&](const char* name, bool is_set, bool acts) {
    if (is_set && !acts) names.emplace_back(name);
  };
  add("data.packing", data.packing != usual.packing && data.packing != "stream", kind.has_documents);
  add("data.long_documents", data.long_documents != usual.long_documents, kind.has_documents);
  add("data.packing_window", data.packing_window != usual.packing_window, kind.has_documents);
  add("data.chat_template", data.chat_template != usual.chat_template, conversations);
  add("data.template_date", data.template_date != usual.template_date, conversations);
  add("data.loss", data.loss != usual.loss, conversations);
  add("data.text_key", data.text_key != usual.text_key, conversations);
  add("data.append_eos", data.append_eos != usual.append_eos,
      kind.tokenized_here && (data.append_eos != "trl" || conversations));
  add("data.add_special_tokens", data.add_special_tokens.has_value(), kind.tokenized_here);
  add("data.on_error", data.on_error != usual.on_error, kind.tokenized_here);
  return names;
}

std::string line_of(const std::vector<std::string>& names, const std::string& kind) {
  return fmt::format("{} {} no effect on {}", fmt::join(names, ", "), names.size() == 1 ? "has" : "have",
                     kind);
}

}  // namespace

std::vector<std::string> idle_settings(const settings::DataSettings& data, bool train, bool as_bytes) {
  const Kind kinds[] = {
      {".npy and .bin files", FileKind::kTokens, false, false},
      {"token shards", FileKind::kShard, false, true},
      {"JSON", FileKind::kJson, true, true},
      {as_bytes ? "texts read as bytes" : "plain texts", FileKind::kText, !as_bytes, !as_bytes}};
  std::vector<bool> is_there(std::size(kinds));
  for (const auto* patterns : {&data.train, &data.eval.files}) {
    if (patterns == &data.train && !train && data.eval_fraction == 0) continue;
    for (const std::string& file : files_of(*patterns)) is_there[static_cast<size_t>(kind_of(file))] = true;
  }
  std::vector<std::string> lines;
  for (const Kind& kind : kinds) {
    if (!is_there[static_cast<size_t>(kind.kind)]) continue;
    const std::vector<std::string> names = idle_for(kind, data);
    if (!names.empty()) lines.push_back(line_of(names, kind.name));
  }
  return lines;
}

}  // namespace plimsoll::preprocessing
