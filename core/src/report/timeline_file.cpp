#include "report/timeline_file.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
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

std::vector<fs::path> timelines_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) out.push_back(entry->path());
  }
  return out;
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

Kind kind_of_pass(const std::string& name) {
  const std::optional<Kind> kind = schedule::kind_named(name);
  if (!kind || !runs_layers(*kind)) throw Error(text("\"{}\" is no kind of pass", name));
  return *kind;
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
  out.span.kind = kind_of_pass(of.at("kind").get<std::string>());
  out.span.stage = static_cast<std::int32_t>(whole(of, "stage", 0, kMost));
  out.span.microbatch = static_cast<std::int32_t>(whole(of, "microbatch", 0, kMost));
  out.span.start = time(of, "start_ms", free);
  out.span.end = time(of, "end_ms", out.span.start);
  out.waited_ms = time(of, "waited_ms", 0);
  return out;
}

} // namespace

Machine this_machine() {
  Machine out;
  std::array<char, 256> host{};
  out.host = ::gethostname(host.data(), host.size() - 1) == 0 ? host.data() : "unknown";
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), out.boot);
  return out;
}

void write_timeline(const fs::path& folder, const RankTimeline& timeline) {
  const fs::path file = file_of(folder, timeline.rank);
  std::ofstream out(file);
  JsonObject head;
  head.set("rank", timeline.rank)
      .set("ranks", timeline.ranks)
      .set("host", timeline.machine.host)
      .set("boot", timeline.machine.boot)
      .set("step", timeline.step);
  std::string opened = head.line();
  opened.pop_back();
  out << opened << ",\"passes\":[";
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
  if (!in) {
    const int why = errno;
    const std::vector<fs::path> others = timelines_in(folder);
    throw Error(text("cannot be read: {}", std::strerror(why)), file.string(),
                !others.empty()
                    ? text("of other ranks there are {}: copy it there from where that rank ran, or train again with "
                           "log.timeline, in a folder that all ranks share",
                           others.size())
                    : std::string("each rank of a run writes it after the step that log.timeline names"));
  }
  try {
    const nlohmann::json read = nlohmann::json::parse(in);
    RankTimeline out{static_cast<int>(whole(read, "rank", rank, rank)),
                     whole(read, "step", 1, std::numeric_limits<std::int64_t>::max()),
                     {},
                     static_cast<int>(whole(read, "ranks", rank + 1, std::numeric_limits<int>::max())),
                     {read.at("host").get<std::string>(), read.at("boot").get<std::string>()}};
    double free = 0;
    for (const nlohmann::json& pass : read.at("passes")) {
      out.passes.push_back(to_pass(pass, free));
      free = out.passes.back().span.end;
    }
    return out;
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(text("is no timeline of a rank: byte {} is where its JSON goes wrong", error.byte), file.string(),
                "train again with log.timeline");
  } catch (const nlohmann::json::exception&) {
    throw Error("is no timeline of a rank: a value is missing, or of another type", file.string(),
                "train again with log.timeline");
  } catch (const std::exception& error) {
    throw Error(text("is no timeline of a rank: {}", error.what()), file.string(), "train again with log.timeline");
  }
}

void remove_timelines(const fs::path& folder) {
  for (const fs::path& file : timelines_in(folder)) {
    std::error_code kept;
    fs::remove(file, kept);
  }
}

} // namespace triax::report
