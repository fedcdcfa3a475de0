// SPDX-License-Identifier: Apache-2.0
// A picture of a schedule (draw/schedule_svg.hpp) as a figure in the colours of the page.
//
// Threads: pure functions. Errors: those of schedule_svg().
#pragma once

#include <optional>
#include <string>

#include "draw/schedule_svg.hpp"
#include "page/page.hpp"

namespace triax::page {

/// Empty if the picture is too large to be readable.
std::optional<Figure> schedule_figure(const std::string& title, const draw::Picture& picture);

/// Style rules that replace the colours of the picture's paper, text and idle time.
std::string schedule_style();

} // namespace triax::page
