// SPDX-License-Identifier: Apache-2.0
#include "bench/bench_text.hpp"

#include <algorithm>

#include "base/scaled_text.hpp"
#include "common/machine_text.hpp"
#include "common/printable_line.hpp"
#include "plugin/option_text.hpp"

namespace triax::app {

std::string machine_line() {
  return "machine  " + machine_text(os::this_machine());
}

std::string side_line(const std::string& label, const bench::Side& side) {
  const triax_plugin& plugin = *side.choice.library->descriptor;
  std::string options;
  for (const auto& [key, value] : side.set) options += text(", {} = {}", key, value);
  const std::string padding(label.size() < 7 ? 7 - label.size() : 0, ' ');
  return printable_line(text("{}{}  {} {}{}; {}", label, padding, plugin.name, plugin.version,
                             options.empty() ? ", default options" : options, side.choice.library->file));
}

std::string cell(const std::string& value, int width) {
  const auto padding = static_cast<std::size_t>(std::max(width - static_cast<int>(value.size()), 1));
  return std::string(padding, ' ') + value;
}

std::string microseconds(double seconds) {
  const double us = 1e6 * seconds;
  return decimals_text(us, us < 100 ? 2 : us < 10'000 ? 1 : 0);
}

std::string ratio_heading() {
  return cell("B/A", 8) + cell("95 % interval", 16) + cell("faster", 8);
}

std::string ratio_cells(const compare::Ratio& ratio) {
  const char* const faster = !ratio.is_significant ? "-" : ratio.value > 1 ? "A" : "B";
  return cell(decimals_text(ratio.value, 3), 8) +
         cell(text("[{}, {}]", decimals_text(ratio.low, 3), decimals_text(ratio.high, 3)), 16) + cell(faster, 8);
}

nlohmann::ordered_json side_json(const bench::Side& side) {
  const triax_plugin& plugin = *side.choice.library->descriptor;
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
  for (const triax_option& option : side.choice.library->options)
    options[option.name] = plugin::to_toml(side.choice.options.value(option.name));
  return {{"plugin", plugin.name},
          {"version", plugin.version},
          {"file", side.choice.library->file.string()},
          {"options", options}};
}

} // namespace triax::app
