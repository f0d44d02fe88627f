// Shared helpers of the inspect commands: facts that print for people or as JSON, and the table of tensors.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/model_weights.h"
#include "io/tree.h"

namespace plimsoll::cli {

struct InspectArguments {
  std::string path;
  bool json = false;
  bool tensors = false;  ///< the table of tensors for folders too
  bool formats = false;  ///< the table of number formats instead
  std::string as;        ///< a format to round the file's tensors to
  std::string output;    ///< where what came of it goes
};

/// What is known of one thing, told once: lines "label  text" for people, or one JSON object.
class Facts {
 public:
  explicit Facts(const std::string& event);
  /// A member of the object, and a line where `label` is given.
  void add(const std::string& key, io::Tree value, const std::string& label = {},
           const std::string& text = {});
  /// A line alone; an empty label goes on under the one above.
  void line(const std::string& label, const std::string& text);
  void print(bool json) const;

 private:
  io::Tree object_;
  std::vector<std::pair<std::string, std::string>> lines_;
};

/// Tensors, elements and bytes of a list, in all and by dtype.
void add_totals(Facts& facts, const std::vector<io::WeightRef>& tensors);
/// "BF16", or "BF16 (200 tensors), F32 (3 tensors)".
std::string dtypes_text(const std::vector<io::WeightRef>& tensors);
/// Measures and prints all, one JSON object or row each, the totals last; "layers.2" before "layers.10".
Status print_tensors(std::vector<io::WeightRef> tensors, bool json);
/// "0", "12.5%", "<0.1%".
std::string share_text(int64_t part, int64_t whole);
/// "layers.2" before "layers.10": runs of digits compare as numbers.
bool natural_less(std::string_view a, std::string_view b);
/// All tensors of a file.
std::vector<io::WeightRef> tensors_of(const io::SafetensorsFile& file);

/// A folder with config.json. Errors: kBadData for files that cannot be read, and, after everything is
/// printed, for weights that are not the config's.
Status inspect_model(const std::string& directory, const InspectArguments& arguments);
/// A folder with adapter_config.json: its base, what it adapts and saves whole. Errors: kBadData for adapters
/// that are not available, by name.
Status inspect_adapter(const std::string& directory, const InspectArguments& arguments);
/// A folder with checkpoint.json; reads every byte. Errors: kBadData where it is damaged.
Status inspect_checkpoint(const std::string& directory, const InspectArguments& arguments);
/// A safetensors file's tensors rounded to `arguments.as`: prints what that does to each, writes codes,
/// scales and the numbers that they stand for where `arguments.output` is given. Memory: a few MiB a thread.
/// Errors: kInvalidArgument for an unknown format (the nearest is named) and for an output that is the input;
/// kBadData and kIo of the file.
Status inspect_as(const InspectArguments& arguments);
/// The table of formats.
Status inspect_formats(bool json);

}  // namespace plimsoll::cli
