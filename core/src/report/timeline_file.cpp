#include "report/timeline_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "report/json.hpp"
#include "triax/error.hpp"

namespace triax::report {

namespace {

namespace fs = std::filesystem;
using schedule::Kind;

constexpr std::string_view kPrefix = "timeline-rank-", kSuffix = ".json";

fs::path file_of(const fs::path& folder, int rank) {
  return folder / text("{}{}{}", kPrefix, rank, kSuffix);
}

JsonObject to_json(const schedule::MeasuredPass& pass) {
  JsonObject out;
  out.set("kind", rule(pass.span.kind).name)
      .set("stage", pass.span.stage)
      .set("microbatch", pass.span.microbatch)
      .set("start_ms", pass.span.start)
      .set("end_ms", pass.span.end)
      .set("waited_ms", pass.waited_ms);
  return out;
}

Kind kind_named(const std::string& name) {
  for (const schedule::Rule& rule : schedule::rules())
    if (name == rule.name && runs_layers(rule.kind)) return rule.kind;
  throw Error(text("\"{}\" is no kind of pass", name));
}

constexpr double kMostMs = 1e15; // sums of times stay exact enough

std::int64_t whole(const nlohmann::json& of, const char* key, std::int64_t least, std::int64_t most) {
  const nlohmann::json& value = of.at(key);
  if (value.is_number_integer() && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most)
    return value.get<std::int64_t>();
  throw Error(text("{} is {}, and no whole number from {} to {}", key, value.dump(), least, most));
}

double time(const nlohmann::json& of, const char* key, double least) {
  const double value = of.at(key).get<double>();
  if (value >= least && value <= kMostMs) return value;
  throw Error(text("{} is {}, and no time from {} on", key, of.at(key).dump(), least));
}

/// `free`: when the pass before has ended.
schedule::MeasuredPass to_pass(const nlohmann::json& of, double free) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  schedule::MeasuredPass out;
  out.span.kind = kind_named(of.at("kind").get<std::string>());
  out.span.stage = static_cast<std::int32_t>(whole(of, "stage", 0, kMost));
  out.span.microbatch = static_cast<std::int32_t>(whole(of, "microbatch", 0, kMost));
  out.span.start = time(of, "start_ms", free);
  out.span.end = time(of, "end_ms", out.span.start);
  out.waited_ms = time(of, "waited_ms", 0);
  return out;
}

} // namespace

void write_timeline(const fs::path& folder, const RankTimeline& timeline) {
  const fs::path file = file_of(folder, timeline.rank);
  std::ofstream out(file);
  out << "{\"rank\":" << timeline.rank << ",\"step\":" << timeline.step << ",\"passes\":[";
  const char* separator = "\n";
  for (const schedule::MeasuredPass& pass : timeline.passes) {
    out << separator << to_json(pass).line();
    separator = ",\n";
  }
  out << "\n]}\n" << std::flush;
  if (!out) throw Error(text("cannot be written: {}", std::strerror(errno)), file.string());
}

RankTimeline read_timeline(const fs::path& folder, int rank) {
  const fs::path file = file_of(folder, rank);
  std::ifstream in(file);
  if (!in)
    throw Error(text("cannot be read: {}", std::strerror(errno)), file.string(),
                "each rank of a run writes it after the step that log.timeline names");
  try {
    const nlohmann::json read = nlohmann::json::parse(in);
    RankTimeline out{static_cast<int>(whole(read, "rank", rank, rank)),
                     whole(read, "step", 1, std::numeric_limits<std::int64_t>::max()),
                     {}};
    double free = 0;
    for (const nlohmann::json& pass : read.at("passes")) {
      out.passes.push_back(to_pass(pass, free));
      free = out.passes.back().span.end;
    }
    return out;
  } catch (const std::exception& error) {
    throw Error(text("is no timeline of a rank: {}", error.what()), file.string(), "train again with log.timeline");
  }
}

void remove_timelines(const fs::path& folder) {
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    const std::string name = entry->path().filename().string();
    std::error_code kept;
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) fs::remove(entry->path(), kept);
  }
}

} // namespace triax::report
