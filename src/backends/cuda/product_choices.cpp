#include "backends/cuda/product_choices.h"

#include <charconv>

#include "io/checksum.h"

namespace plimsoll::cuda {
namespace {

constexpr std::string_view kTitle = "plimsoll products 1\n", kLibrary = "cublaslt ", kSum = "checksum ";
constexpr size_t kDigitsOfAWord = 16;

/// One line, without its end; nothing where there is none.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return {};
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

template <typename Number>
bool read_number(std::string_view digits, int base, Number& number) {
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  return error == std::errc() && stop == digits.data() + digits.size() && !digits.empty();
}

/// "form words": the words as hexadecimal digits.
bool read_choice(std::string_view line, ProductChoices& choices) {
  const size_t space = line.rfind(' ');
  Algorithm algorithm{};
  if (space == std::string_view::npos || line.size() - space - 1 != kDigitsOfAWord * algorithm.size())
    return false;
  for (size_t i = 0; i < algorithm.size(); ++i)
    if (!read_number(line.substr(space + 1 + i * kDigitsOfAWord, kDigitsOfAWord), 16, algorithm[i]))
      return false;
  return choices.by_form.emplace(line.substr(0, space), algorithm).second;
}

}  // namespace

std::string choices_text(const ProductChoices& choices) {
  std::string text(kTitle);
  text.append(kLibrary).append(std::to_string(choices.library_version)).append("\n");
  for (const auto& [form, algorithm] : choices.by_form) {
    text.append(form).append(" ");
    for (const uint64_t word : algorithm) text += io::checksum_text(word);  // 16 hexadecimal digits
    text += '\n';
  }
  return text + std::string(kSum) + io::checksum_text(io::checksum(text)) + "\n";
}

Result<ProductChoices> parse_choices(std::string_view text) {
  const Error damaged{ErrorCode::kBadData, "no whole list of the algorithms of products", "",
                      "remove the file, and run 'plimsoll calibrate --products' again"};
  const size_t sum = text.rfind(kSum);
  if (!text.starts_with(kTitle) || sum == std::string_view::npos) return damaged;
  if (text.substr(sum) != std::string(kSum) + io::checksum_text(io::checksum(text.substr(0, sum))) + "\n")
    return damaged;
  text = text.substr(kTitle.size(), sum - kTitle.size());
  ProductChoices choices;
  const std::string_view library = take_line(text);
  if (!library.starts_with(kLibrary) ||
      !read_number(library.substr(kLibrary.size()), 10, choices.library_version))
    return damaged;
  while (!text.empty())
    if (!read_choice(take_line(text), choices)) return damaged;
  return choices;
}

}  // namespace plimsoll::cuda
