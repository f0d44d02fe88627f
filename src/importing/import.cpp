#include "importing/import.h"

#include <fmt/format.h>

#include <algorithm>

#include "importing/settle.h"
#include "importing/table.h"

namespace plimsoll::importing {
namespace {

constexpr size_t kMostErrors = 20;

Error wrong(std::string what, const std::string& where, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), where, std::move(hint)};
}

Error together(std::vector<Error> errors) {
  if (errors.size() > kMostErrors) errors.resize(kMostErrors);
  Error first = std::move(errors.front());
  for (size_t i = 1; i < errors.size(); ++i) first.more.push_back(std::move(errors[i]));
  return first;
}

/// DeepSpeed's before the others: what it decides, a Trainer leaves to it. Two of one dialect are two runs.
Result<std::vector<Source>> read_all(std::span<const InputFile> files, const std::string& from) {
  std::vector<Source> all;
  std::vector<Error> errors;
  for (const InputFile& file : files) {
    // --from says whose the arguments are; a DeepSpeed file beside them is known by its keys.
    auto sources = read_source(file.text, file.name, files.size() > 1 ? "" : from);
    if (files.size() > 1 && !from.empty() && (!sources || sources->front().dialect != Dialect::kDeepspeed))
      sources = read_source(file.text, file.name, from);
    if (sources)
      all.insert(all.end(), sources->begin(), sources->end());
    else
      errors.push_back(std::move(sources).error());
  }
  if (!errors.empty()) return together(std::move(errors));
  std::stable_sort(all.begin(), all.end(), [](const Source& a, const Source& b) {
    return (a.dialect == Dialect::kDeepspeed) > (b.dialect == Dialect::kDeepspeed);
  });
  const auto is_engine = [](const Source& s) { return s.dialect == Dialect::kDeepspeed; };
  const auto engines = std::count_if(all.begin(), all.end(), is_engine);
  if (engines > 1 || std::ssize(all) - engines > 1)
    return wrong(
        fmt::format("{} and {} are two runs", all[0].file, all.back().file), "",
        "import them one by one; a DeepSpeed configuration may be given together with one of the others");
  return all;
}

/// The dialect that is not DeepSpeed's, where there is one.
std::optional<Dialect> main_dialect(const Draft& draft) {
  for (const Source& source : draft.sources())
    if (source.dialect != Dialect::kDeepspeed) return source.dialect;
  return {};
}

void settle_dialects(Draft& draft) {
  const auto main = main_dialect(draft);
  if (draft.has_dialect(Dialect::kDeepspeed)) settle_deepspeed(draft, !main);
  if (main == Dialect::kTorchtune)
    settle_torchtune(draft);
  else if (main)
    settle_trainer(draft, *main);
}

/// Keys that no piece has taken: null, "auto", or set aside by what others say.
void sweep(Draft& draft, const SourceKey& key, bool is_alone) {
  if (draft.is_accounted(key)) return;
  const Row* row = find_row(key.dialect, key.pattern);
  const std::string setting(row == nullptr ? "" : row->setting);
  if (key.value.is_null()) return draft.harmless(key, "null has no effect");
  if (key.value.text != "auto") return draft.no_equal(key, "other keys decide it", setting);
  if (key.dialect != Dialect::kDeepspeed) return draft.harmless(key, "auto has no effect");
  if (is_alone) {
    if (!setting.empty() && !draft.has(setting))
      draft.fill_in(setting, "the arguments say it: import both files");
    return draft.no_equal(key, "the arguments say it: import both files at once", setting);
  }
  if (draft.has(setting)) return draft.joined(key, setting, "as the arguments say");
  draft.harmless(key, "as the arguments say, whose default is as here");
}

/// DeepSpeed's "auto" is a value of no row.
bool is_auto(const SourceKey& key) {
  const Row* row = find_row(key.dialect, key.pattern);
  return key.dialect == Dialect::kDeepspeed && key.value.text == "auto" &&
         (row == nullptr || row->rule != Rule::kHarmless || row->words != "*");
}

std::vector<KeyReport> in_order(const Draft& draft, std::span<const InputFile> files) {
  std::vector<KeyReport> keys = draft.reports();
  std::map<std::pair<std::string, std::string>, size_t> place;
  for (size_t f = 0; f < files.size(); ++f)
    for (const Source& source : draft.sources())
      if (source.file == files[f].name)
        for (const SourceKey& key : source.keys) place.emplace(std::pair{key.file, key.name}, place.size());
  std::stable_sort(keys.begin(), keys.end(), [&](const KeyReport& a, const KeyReport& b) {
    return place[{a.key.file, a.key.name}] < place[{b.key.file, b.key.name}];
  });
  return keys;
}

}  // namespace

int64_t Imported::count(Fate fate) const {
  return std::count_if(keys.begin(), keys.end(), [&](const KeyReport& key) { return key.fate == fate; });
}

Result<Imported> import_run(std::span<const InputFile> files, const std::string& from) {
  PLIMSOLL_ASSIGN(std::vector<Source> sources, read_all(files, from));
  Draft draft(std::move(sources));
  const auto main = main_dialect(draft);
  settle_dialects(draft);
  for (const Source& source : draft.sources())
    for (const SourceKey& key : source.keys)
      if (!is_auto(key)) apply_row(key, draft);
  if (main && main != Dialect::kTorchtune) set_trainer_defaults(draft, *main);
  for (const Source& source : draft.sources())
    for (const SourceKey& key : source.keys) sweep(draft, key, !main);
  ask_for_data_and_model(draft);
  draft.settle();
  if (!draft.errors().empty()) return together(std::move(draft.errors()));
  Imported imported;
  imported.keys = in_order(draft, files);
  imported.run_file = run_file_text(draft, imported.keys);
  if (!settings::parse_run_config(imported.run_file, "")) {
    draft.leave_the_best_model();
    imported.run_file = run_file_text(draft, imported.keys);
  }
  for (const auto& [path, line] : draft.lines())
    if (line.keys.empty()) imported.defaults.emplace_back(path, line);
  imported.fill_in = {draft.to_fill_in().begin(), draft.to_fill_in().end()};
  auto checked = settings::parse_run_config(imported.run_file, "the run file that would be written");
  if (!checked) return std::move(checked).error();
  return imported;
}

io::Tree shown_value(const SourceKey& key) {
  const bool is_secret = key.pattern.ends_with("token") && key.value.kind == io::Tree::Kind::kString &&
                         key.value.text.starts_with("hf_");
  return is_secret ? io::Tree::of(std::string("hf_…")) : key.value;
}

io::Tree import_event(const Imported& imported) {
  const auto text = [](std::string_view value) { return io::Tree::of(std::string(value)); };
  io::Tree keys = io::Tree::list(), defaults = io::Tree::list(), fill_in = io::Tree::list();
  for (const KeyReport& report : imported.keys)
    keys.items.push_back(
        io::Tree::map({{"key", text(report.key.name)},
                       {"value", shown_value(report.key)},
                       {"status", text(name_of(report.fate))},
                       {"setting", report.setting.empty() ? io::Tree{} : text(report.setting)},
                       {"note", text(report.note)},
                       {"file", text(report.key.file)},
                       {"from", text(name_of(report.key.dialect))}}));
  for (const auto& [path, line] : imported.defaults)
    defaults.items.push_back(
        io::Tree::map({{"setting", text(path)}, {"value", line.value}, {"note", text(line.comment)}}));
  for (const auto& [path, why] : imported.fill_in)
    fill_in.items.push_back(io::Tree::map({{"setting", text(path)}, {"note", text(why)}}));
  return io::Tree::map({{"event", text("import")},
                        {"keys", keys},
                        {"mapped", io::Tree::of(imported.count(Fate::kMapped))},
                        {"harmless", io::Tree::of(imported.count(Fate::kHarmless))},
                        {"no_equal", io::Tree::of(imported.count(Fate::kNoEqual))},
                        {"defaults", defaults},
                        {"fill_in", fill_in}});
}

}  // namespace plimsoll::importing
