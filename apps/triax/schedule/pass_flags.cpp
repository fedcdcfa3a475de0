// SPDX-License-Identifier: Apache-2.0
#include "schedule/pass_flags.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

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
  return text("must be a time in ms in [0, {}], got \"{}\"", kMaxMs, written);
}

/// visit(text) for each part of "1,5,1"; CLI11's own lists drop empty parts.
template <class Visit>
void for_each_part(std::string_view list, Visit visit) {
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    visit(std::string(list.substr(begin, end - begin)));
    if (end == list.size()) return;
    begin = end + 1;
  }
}

std::string are_times(const std::string& written) {
  std::string wrong;
  for_each_part(written, [&wrong](const std::string& part) {
    if (wrong.empty()) wrong = is_a_time(part);
  });
  return wrong;
}

std::vector<double> times_of(const std::string& written) {
  std::vector<double> out;
  for_each_part(written, [&out](const std::string& part) {
    double& value = out.emplace_back(); // not std::stod(), which refuses subnormal numbers
    std::from_chars(part.data(), part.data() + part.size(), value);
  });
  return out;
}

CLI::Option* add_time(CLI::App& verb, const char* name, auto& value, const char* doc) {
  return verb.add_option(name, value, doc)->check(CLI::Validator(is_a_time, {}))->type_name("MS");
}

} // namespace

void add_pass_flags(CLI::App& verb, PassFlags& flags) {
  add_time(verb, "--forward-ms", flags.times.forward_ms, "F: forward of one microbatch on one stage");
  add_time(verb, "--input-ms", flags.times.input_ms, "I: its input gradient");
  add_time(verb, "--weight-ms", flags.times.weight_ms, "W: its weight gradient; a whole backward takes I plus W");
  add_time(verb, "--recompute-ms", flags.times.recompute_ms,
           "R: what a stage recomputes before its gradient arrives; default 0: no stage recomputes");
  verb.add_option_function<std::string>(
          "--link-ms", [&flags](const std::string& written) { flags.link_ms = times_of(written); },
          "transfer to a stage on another rank, which occupies neither; one value, or one for each link between "
          "stages: "
          "1,5,1")
      ->check(CLI::Validator(are_times, {}))
      ->type_name("MS");
}

void add_stage_flags(CLI::App& verb, schedule::StageTimes& times) {
  add_time(verb, "--reduce-ms", times.reduce_ms, "gradient reduction of one stage, beside later passes; default 0");
  add_time(verb, "--optimizer-ms", times.optimizer_ms, "optimizer step of one stage; default 0");
  add_time(verb, "--gather-ms", times.gather_ms,
           "all-gather of the parameters of one stage, in runs with optimizer.shard; default 0");
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
  const auto count = static_cast<std::size_t>(stages), links = count - 1;
  if (flags.link_ms.size() != 1 && flags.link_ms.size() != links)
    throw CLI::ValidationError("--link-ms",
                               text("has {} values, but {} stages have {} {}; give one value, or one for each link",
                                    flags.link_ms.size(), stages, links, links == 1 ? "link" : "links"));
  const bool one = flags.link_ms.size() == 1;
  return {std::vector<schedule::PassTimes>(count, flags.times),
          one ? std::vector<double>(links, flags.link_ms.front()) : flags.link_ms};
}

std::string to_text(const PassFlags& flags) {
  std::string links = flags.link_ms.size() == 1 ? "link" : "links";
  for (std::size_t edge = 0; edge < flags.link_ms.size(); ++edge)
    links += text("{} {} ms", edge == 0 ? "" : ",", flags.link_ms[edge]);
  const std::string recompute = flags.recomputes() ? text("R {} ms, ", flags.times.recompute_ms) : "";
  return text("F {} ms, I {} ms, W {} ms, {}{}", flags.times.forward_ms, flags.times.input_ms, flags.times.weight_ms,
              recompute, links);
}

} // namespace triax::app
