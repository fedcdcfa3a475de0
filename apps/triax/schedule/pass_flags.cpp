// SPDX-License-Identifier: Apache-2.0
#include "schedule/pass_flags.hpp"

#include <charconv>

#include "common/missing_flags.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

constexpr double kMaxMs = 1e12; // thirty years; sums stay exact enough

/// CLI11 alone would accept "nan" and "inf".
std::string is_a_time(const std::string& written) {
  double value = 0;
  const char* end = written.data() + written.size();
  const auto [read, error] = std::from_chars(written.data(), end, value);
  if (error == std::errc() && read == end && value >= 0 && value <= kMaxMs) return {}; // also rejects NaN
  return text("must be a time in ms from 0 to {}, got \"{}\"", kMaxMs, written);
}

} // namespace

void add_pass_flags(CLI::App& verb, PassFlags& flags) {
  const auto time = [&verb](const char* name, double& value, const char* doc) {
    verb.add_option(name, value, doc)->check(CLI::Validator(is_a_time, {}))->type_name("MS");
  };
  time("--forward-ms", flags.times.forward_ms, "F: forward of one microbatch on one stage");
  time("--input-ms", flags.times.input_ms, "I: its input gradient");
  time("--weight-ms", flags.times.weight_ms, "W: its weight gradient; a whole backward takes I plus W");
  time("--link-ms", flags.link_ms, "transfer to the next rank; it occupies neither rank");
}

std::string missing_passes(const CLI::App& verb, const std::vector<std::string>& names) {
  std::vector<std::string> missing;
  for (const std::string& name : names)
    if (verb.get_option(name)->count() == 0) missing.push_back(name);
  return required_text(missing);
}

void require_some_time(const PassFlags& flags) {
  if (flags.times.forward_ms + flags.times.input_ms + flags.times.weight_ms == 0)
    throw CLI::ValidationError("--forward-ms, --input-ms, --weight-ms", "are all 0: there is nothing to simulate");
}

schedule::Costs costs_of(const PassFlags& flags, int stages) {
  return {std::vector<schedule::PassTimes>(static_cast<std::size_t>(stages), flags.times), flags.link_ms};
}

std::string to_text(const PassFlags& flags) {
  return text("F {} ms, I {} ms, W {} ms, link {} ms", flags.times.forward_ms, flags.times.input_ms,
              flags.times.weight_ms, flags.link_ms);
}

} // namespace triax::app
