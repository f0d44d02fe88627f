// A course of numbers as a few characters, for terminals.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace plimsoll {

/// At most `columns` characters of eight heights (U+2581 to U+2588), the lowest value the lowest; where there
/// are more values each character is the mean of its share. What is not finite is left out; all equal: all
/// low. Empty where nothing is left.
std::string sparkline(std::span<const double> values, size_t columns);

}  // namespace plimsoll
