#include "io/foreign_format.h"

namespace plimsoll::io {
namespace {

constexpr const char* kConvert =
    "convert it: load it with transformers and call save_pretrained(…, safe_serialization=True)";
constexpr const char* kDownload = "what was saved is a page for browsers: download the file itself";
constexpr const char* kPickle = "this is a pickle, as torch.save wrote (pytorch_model.bin)";

struct Row {
  std::string_view magic;
  ForeignFormat format;
};
constexpr Row kRows[] = {
    {"version https://git-lfs",
     {"this is a Git-LFS pointer, not the file it stands for", "fetch the content: git lfs pull"}},
    {"PK\x03\x04", {"this is a zip archive, as torch.save writes (pytorch_model.bin)", kConvert}},
    {"\x80\x02", {kPickle, kConvert}},
    {"\x80\x03", {kPickle, kConvert}},
    {"\x80\x04", {kPickle, kConvert}},
    {"\x80\x05", {kPickle, kConvert}},
    {"\x89HDF\r\n", {"this is an HDF5 file, as TensorFlow writes", kConvert}},
    {"\x93NUMPY", {"this is a NumPy array", "name a safetensors file"}},
    {"GGUF", {"this is a GGUF file", "take the model's safetensors files instead"}},
    {"{", {"this is JSON text", "name the safetensors file, not its index or config"}},
};
constexpr std::string_view kTags[] = {"<!doctype", "<!DOCTYPE", "<html", "<HTML", "<?xml"};

}  // namespace

std::optional<ForeignFormat> recognise_format(std::string_view prefix) {
  for (const Row& row : kRows)
    if (prefix.starts_with(row.magic)) return row.format;
  const size_t text = prefix.find_first_not_of(" \t\r\n");
  for (const std::string_view tag : kTags)
    if (text < prefix.size() && prefix.substr(text).starts_with(tag))
      return ForeignFormat{"this is a web page", kDownload};
  return std::nullopt;
}

}  // namespace plimsoll::io
