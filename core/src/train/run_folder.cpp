// SPDX-License-Identifier: Apache-2.0
#include "train/run_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "config/run_files.hpp"
#include "os/path_names.hpp"
#include "os/replace_file.hpp"
#include "report/json.hpp"
#include "report/timeline_file.hpp"
#include "triax/error.hpp"

namespace triax::train {

namespace {

namespace fs = std::filesystem;

using config::kFailedStartFile, config::kFailureFile, config::kResolvedFile;

const fs::path& made(const fs::path& folder, const char* key) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw Error("the folder cannot be created: " + failed.message(), folder.string(),
                text("choose another with {}", key));
  return folder;
}

/// The target, if the name is a link. A device or a FIFO is not a metrics file of an earlier run.
fs::path metrics_file(const config::RunConfig& run) {
  std::error_code unknown;
  const fs::path file = fs::weakly_canonical(run.log.metrics, unknown);
  return unknown ? run.log.metrics : file;
}

/// "metrics.jsonl" -> "metrics-2.jsonl"
fs::path numbered(const fs::path& file, int number) {
  return file.parent_path() / (file.stem().string() + text("-{}", number) + file.extension().string());
}

bool has_content(const fs::path& file) {
  std::error_code unknown;
  return fs::is_regular_file(file, unknown) && fs::file_size(file, unknown) > 0;
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void move(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  if (failed)
    throw Error(text("cannot be moved to {}: {}", to.filename(), failed.message()), from.string(),
                "move it yourself, or choose another folder with run.dir");
}

/// The file gets the content of its temporary file, and what it had gets the name `kept`. At every instant one of them
/// has the name of the file; only if the file system has no hard links, there is a moment without it.
void keep_and_replace(const fs::path& file, const fs::path& kept) {
  const bool is_linked = ::link(file.c_str(), kept.c_str()) == 0;
  if (!is_linked) move(file, kept);
  try {
    os::commit_temporary(file);
  } catch (...) {
    std::error_code ignored;
    if (is_linked) fs::remove(kept, ignored);
    if (!is_linked) fs::rename(kept, file, ignored);
    throw;
  }
}

/// The files that an earlier run left, and new names for them.
class EarlierFiles {
 public:
  EarlierFiles(const config::RunConfig& run, const std::string& resolved_toml, std::int64_t done)
      : folder_(run.folder),
        metrics_(metrics_file(run)),
        checkpoints_(run.checkpoints()),
        timelines_(report::timelines_in(folder_)) {
    const fs::path usual = folder_ / "metrics.jsonl";
    std::error_code unknown;
    if (done > 0 && fs::is_regular_file(metrics_, unknown)) continued_ = report::records_up_to(metrics_, done);
    if (has_content(metrics_) && !continued_.is_whole_file) files_.push_back(metrics_);
    if (has_content(usual) && !fs::equivalent(usual, metrics_, unknown))
      files_.push_back(usual); // this run writes its metrics elsewhere
    if (os::is_there(folder_ / kFailureFile)) files_.push_back(folder_ / kFailureFile);
    std::error_code none;
    if (done == 0 && fs::is_directory(checkpoints_, none) && !fs::is_empty(checkpoints_, none))
      files_.push_back(checkpoints_);
    const fs::path events = folder_ / config::kTensorBoardFolder;
    if (done == 0 && fs::is_directory(events, none) && !fs::is_empty(events, none)) files_.push_back(events);
    const fs::path resolved = folder_ / kResolvedFile;
    const bool recorded = !files_.empty() || !timelines_.empty();
    if (os::is_there(resolved) && (recorded || !has_content(resolved) || content_of(resolved) != resolved_toml))
      files_.push_back(resolved);
  }

  /// Throws Error before anything is moved if the records that remain do not fit on the disk.
  std::string move_aside() const {
    os::remove_temporary(metrics_); // of a start that was killed
    if (!continued_.lines.empty()) os::write_temporary(metrics_, continued_.lines);
    try {
      return moved_aside();
    } catch (...) {
      os::remove_temporary(metrics_);
      throw;
    }
  }

 private:
  /// Checkpoints go first: a start that is killed before the metrics are moved then begins anew, too, and does not
  /// continue without their records.
  std::string moved_aside() const {
    const int number = free_number();
    for (const fs::path& file : files_)
      if (file == checkpoints_) move(file, numbered(file, number));
    std::string out;
    for (const fs::path& file : files_) {
      const fs::path kept = numbered(file, number);
      if (file == metrics_ && !continued_.lines.empty()) {
        keep_and_replace(file, kept);
      } else if (file != checkpoints_) {
        move(file, kept);
      }
      const bool inside = file.parent_path() == folder_;
      out += (out.empty() ? "" : ", ") + text("{} to {}", inside ? file.filename() : file, kept.filename());
    }
    if (!timelines_.empty()) {
      const fs::path kept = timelines(number);
      made(kept, "run.dir");
      for (const fs::path& file : timelines_) move(file, kept / file.filename());
      out += (out.empty() ? "" : ", ") + text("timelines to {}", kept.filename());
    }
    return out.empty() ? out : text("{}: files of the earlier run were moved: {}", folder_, out);
  }

  /// One number for all files, so that it shows which belong together.
  int free_number() const {
    int number = 1;
    const auto taken = [&] {
      for (const fs::path& file : files_)
        if (os::is_there(numbered(file, number))) return true;
      return os::is_there(timelines(number)) || os::is_there(numbered(folder_ / kResolvedFile, number));
    };
    while (taken()) ++number;
    return number;
  }

  fs::path timelines(int number) const { return folder_ / text("timelines-{}", number); }

  const fs::path folder_, metrics_, checkpoints_;
  const std::vector<fs::path> timelines_;
  report::KeptRecords continued_;
  std::vector<fs::path> files_;
};

/// Checks that a file can be created here and that its content fits.
void try_to_write(const fs::path& file, const std::string& content) {
  os::write_temporary(file, content);
  os::remove_temporary(file);
}

} // namespace

struct RunFolder::Identity {
  bool is_there = false;
  dev_t device = 0;
  ino_t number = 0;
  bool operator==(const Identity&) const = default;

  static Identity of(const fs::path& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) return {};
    return {true, status.st_dev, status.st_ino};
  }
};

RunFolder::RunFolder(const config::RunConfig& run, const std::string& resolved_toml)
    : folder_(run.folder),
      lock_(made(folder_, "run.dir")),
      resolved_before_(std::make_unique<Identity>(Identity::of(folder_ / kResolvedFile))) {
  try_to_write(folder_ / kResolvedFile, resolved_toml);
  std::error_code unknown;
  const fs::path metrics = metrics_file(run);
  const bool is_file = !fs::exists(metrics, unknown) || fs::is_regular_file(metrics, unknown);
  if (metrics.parent_path() == folder_ || !is_file) return;
  made(metrics.parent_path(), "log.metrics");
  try_to_write(metrics, {});
}

RunFolder::~RunFolder() = default;

fs::path RunFolder::failure_file() const {
  const fs::path folder = lock_.folder();
  const bool begun = Identity::of(folder / kResolvedFile) != *resolved_before_;
  return folder / (begun ? kFailureFile : kFailedStartFile);
}

RunRecords::RunRecords(const config::RunConfig& run, std::string resolved_toml, Log& log)
    : run_(run), resolved_toml_(std::move(resolved_toml)), log_(log) {}

std::string RunRecords::begin(std::int64_t done, const std::vector<MemoryRow>& memory) {
  const fs::path resolved = run_.folder / kResolvedFile;
  os::write_temporary(resolved, resolved_toml_); // first: if there is no space, nothing is moved
  std::string moved;
  try {
    moved = EarlierFiles(run_, resolved_toml_, done).move_aside();
    os::commit_temporary(resolved);
  } catch (...) {
    os::remove_temporary(resolved);
    throw;
  }
  std::error_code none;
  fs::remove(run_.folder / kFailedStartFile, none); // this start has not failed
  open(run_.log.metrics);
  write_memory(memory);
  open_events(run_.folder / config::kTensorBoardFolder, done);
  return moved;
}

/// In the file that is written, whose folder may have been moved.
std::string RunRecords::rewind(std::int64_t done) {
  std::error_code unknown;
  metrics_->check();                                                     // finds where it was moved to
  const fs::path file = fs::weakly_canonical(metrics_->path(), unknown); // the target of a link
  if (unknown || !fs::is_regular_file(file, unknown)) return {};
  const report::KeptRecords kept = report::records_up_to(file, done);
  if (kept.is_whole_file) return {};
  int number = 1;
  while (os::is_there(numbered(file, number))) ++number;
  const fs::path whole = numbered(file, number);
  os::write_temporary(file, kept.lines); // first: if there is no space, nothing is moved
  try {
    keep_and_replace(file, whole);
  } catch (...) {
    os::remove_temporary(file);
    throw;
  }
  open_again();
  if (events_) events_->check(); // finds where it was moved to
  if (events_)
    open_events(events_->folder(), done); // with a new file, TensorBoard drops later steps of the earlier one
  return text("{}: records after step {} are only in {}", file, done, whole.filename());
}

bool RunRecords::lacks_evaluation(std::int64_t step) const {
  std::error_code unknown;
  const fs::path file = metrics_file(run_);
  return fs::is_regular_file(file, unknown) && report::with_evaluation(file, {.step = step});
}

void RunRecords::add_evaluation(const report::StepRecord& record) {
  if (events_) events_->write_evaluation(record);
  metrics_->check(); // finds where it was moved to
  std::error_code unknown;
  const fs::path file = fs::weakly_canonical(metrics_->path(), unknown); // the target of a link
  if (unknown || !fs::is_regular_file(file, unknown)) return;
  const std::optional<std::string> content = report::with_evaluation(file, record);
  if (!content)
    throw Error(text("no longer ends with a record of step {} without an evaluation", record.step), file.string(),
                "another program may have changed the file, which stays as it is");
  os::replace_file(file, *content);
  open_again();
}

void RunRecords::open(fs::path file) {
  metrics_.emplace(file, observer());
}

/// After the file was replaced.
void RunRecords::open_again() {
  earlier_records_ += metrics_->records();
  earlier_missing_ += metrics_->missing();
  open(metrics_->path());
}

os::AppendFile::Observer RunRecords::observer() {
  return [this](const Error& problem, bool lost) {
    lost ? log_.error("{}", problem.what()) : log_.warn("{}", problem.what());
  };
}

void RunRecords::open_events(fs::path folder, std::int64_t done) {
  if (!run_.log.tensorboard) return;
  earlier_missing_events_ = missing_events();
  events_.emplace(folder, done + 1, observer());
}

/// Only reports read it: a failure does not end training.
void RunRecords::write_memory(const std::vector<MemoryRow>& memory) {
  if (memory.empty()) return;
  std::vector<report::JsonObject> rows;
  for (const MemoryRow& row : memory)
    rows.emplace_back().set("what", row.what).set("bytes", std::uint64_t{row.bytes}).set("on_host", row.is_on_host);
  try {
    os::replace_file(run_.folder / config::kMemoryFile,
                     report::JsonObject().set("rank", 0).set("memory", std::move(rows)).line() + '\n');
  } catch (const Error& error) {
    log_.warn("{}", error.what());
  }
}

void RunRecords::write(const report::StepRecord& record) {
  metrics_->write(record);
  if (events_) events_->write(record);
}

void RunRecords::check() {
  metrics_->check();
  if (events_) events_->check();
}

fs::path RunRecords::metrics() const {
  return metrics_ ? metrics_->path() : run_.log.metrics;
}

std::int64_t RunRecords::records() const {
  return earlier_records_ + (metrics_ ? metrics_->records() : 0);
}

std::int64_t RunRecords::missing_events() const {
  return earlier_missing_events_ + (events_ ? events_->missing() : 0);
}

std::int64_t RunRecords::missing() const {
  return earlier_missing_ + (metrics_ ? metrics_->missing() : 0);
}

} // namespace triax::train
