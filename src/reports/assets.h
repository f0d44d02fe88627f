// Files that travel within the program, put there by cmake/embed_text.cmake.
#pragma once

#include <string_view>

namespace plimsoll::reports {

/// dygraphs, the library that draws: its script, its style, its licence.
std::string_view library_script();
std::string_view library_style();
std::string_view library_licence();
/// page/page.js and page/page.css.
std::string_view page_script();
std::string_view page_style();

}  // namespace plimsoll::reports
