// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_commit.hpp"

#include <nlohmann/json.hpp>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "base/caught_error.hpp"
#include "checkpoint/folder.hpp"
#include "checksum/checksum.hpp"
#include "config/run_files.hpp"
#include "os/durable_file.hpp"
#include "report/units.hpp"
#include "train/plugin_states.hpp"
#include "train/wait_for_ranks.hpp"
#include "triax/device.hpp"
#include "triax/version.h"

namespace triax::train {

namespace {

namespace fs = std::filesystem;

constexpr char kWritten = '+', kFailed = '-';

std::string key_of(std::int64_t save, int rank) {
  return text("checkpoint/save {}/{}", save, rank);
}

std::string plugin_text(const config::PluginChoice& choice) {
  return choice.library ? text("{} {}", choice.name, choice.library->descriptor->version) : choice.name;
}

/// Rank 0 must see the files of all ranks, or no rank can read them.
void check_visible(const fs::path& folder, const checkpoint::SavedPart& part, int rank) {
  for (const checkpoint::SavedFile& file : part.files) {
    std::error_code unknown;
    const std::uintmax_t bytes = fs::file_size(folder / file.name, unknown);
    if (unknown || bytes != file.bytes)
      throw Error(text("rank 0 does not see this file as rank {} wrote it", rank), (folder / file.name).string(),
                  "put run.dir on a file system that all hosts share");
  }
}

std::string folder_key(std::int64_t save) {
  return text("checkpoint/save {}/folder", save);
}

PartOrError part_from(std::string_view report, int rank) {
  const std::string_view content = report.substr(1);
  if (report.front() != kWritten) return {{}, {}, std::string(content)};
  const std::size_t end = content.find('\n'); // JSON has no line end in a string
  return {checkpoint::part_from_json(content.substr(end + 1), text("rank {}", rank)),
          nlohmann::json::parse(content.substr(0, end)),
          {}};
}

} // namespace

void publish(Store& store, std::int64_t save, int rank, const PartOrError& part) {
  store.set(key_of(save, rank),
            part.error.empty() ? kWritten + nlohmann::json(part.plugins).dump() + '\n' + checkpoint::to_json(part.part)
                               : kFailed + part.error);
}

void publish_folder(Store& store, std::int64_t save, const fs::path& folder) {
  store.set(folder_key(save), folder.string());
}

fs::path await_folder(Store& store, std::int64_t save) {
  return store.get(folder_key(save), no_deadline());
}

std::map<std::string, std::string> checksums(const std::map<std::string, std::string>& texts) {
  std::map<std::string, std::string> out;
  for (const auto& [use, saved] : texts) {
    Checksum checksum;
    checksum.add(std::as_bytes(std::span(saved)));
    out[use] = checksum.text();
  }
  return out;
}

std::string new_attempt() {
  std::random_device random;
  std::string out;
  for (int i = 0; i < 8; ++i) out += "0123456789abcdef"[random() & 15];
  return out;
}

CheckpointCommit::CheckpointCommit(const config::RunConfig& run, const Layout& layout, std::int64_t sequence,
                                   Store& store, Log& log)
    : run_(run), layout_(layout), sequence_(sequence), store_(store), log_(log) {
  checkpoint::remove_leftovers(run.checkpoints());
}

void CheckpointCommit::own_folder(os::FollowedFolder& folder) {
  if (!folder.is_gone()) return;
  std::error_code failed;
  fs::create_directories(run_.folder, failed);
  if (failed)
    throw Error("was removed and cannot be created again: " + failed.message(), run_.folder.string(),
                "create it; the next checkpoint is written there");
  auto lock = std::make_unique<os::FolderLock>(run_.folder);
  if (fs::exists(run_.folder / config::kResolvedFile, failed))
    throw Error("is the folder of another run: the folder of this run was removed", run_.folder.string(),
                "rename it; the next checkpoint is written in a new folder");
  lock_ = std::move(lock);
  folder.reopen();
  log_.warn("the folder of the run was removed; {} is made again for checkpoints", run_.folder.string());
}

void CheckpointCommit::complete(const fs::path& partial, std::int64_t save, const checkpoint::TrainingState& state,
                                const PartOrError& own, bool removes_old, const std::atomic<bool>& stop) {
  const Clock::time_point began = Clock::now();
  bool committed = false;
  const std::vector<std::string> others = reports_of_others(save); // after an abort, nothing is reported here
  try {
    const checkpoint::Manifest all = manifest(state, merged(partial, own, others));
    checkpoint::check_whole(all.content, (partial / checkpoint::kManifestFile).string());
    if (stop) throw Error("stopped before it was complete", {}, "the checkpoint before stays");
    os::write_durable_file(partial / checkpoint::kManifestFile, checkpoint::to_json(all));
    const fs::path checkpoints = partial.parent_path();
    checkpoint::commit(partial, checkpoints, state.step);
    committed = true;
    newest_ = checkpoint::folder_name(state.step);
    log_.info("step {} is saved in {}", state.step, (checkpoints / newest_).string());
    std::vector<std::string> removed;
    if (removes_old) removed = checkpoint::remove_old(checkpoints, run_.checkpoint.keep, run_.checkpoint.keep_every);
    if (removed.size() > 1) // an earlier start has kept more
      log_.info("removed {} and {} before it (checkpoint.keep = {}, keep_every = {})", removed.back(),
                removed.size() - 1, run_.checkpoint.keep, run_.checkpoint.keep_every);
  } catch (...) {
    const Error error = caught_error();
    std::error_code none;
    fs::remove_all(partial, none);
    if (stop) return log_.debug("{}", error.what());
    if (committed) return log_.warn("an old checkpoint was not removed: {}", error.what());
    ++failed_;
    log_.error("step {} was not saved: {}", state.step, error.what());
  }
  log_.debug("rank 0 completed the checkpoint in {}",
             report::duration_text(std::chrono::duration<double>(Clock::now() - began).count()));
}

/// Waits for all ranks, also if one has failed: they still write to the folder.
std::vector<std::string> CheckpointCommit::reports_of_others(std::int64_t save) {
  struct Awaiting {
    std::atomic<bool>& flag;
    explicit Awaiting(std::atomic<bool>& of) : flag(of) { flag = true; }
    ~Awaiting() { flag = false; }
  } const awaiting(awaits_others_);
  std::vector<std::string> out;
  for (int rank = 1; rank < layout_.world_size(); ++rank) out.push_back(store_.get(key_of(save, rank), no_deadline()));
  for (int rank = 1; rank < layout_.world_size(); ++rank)
    store_.set(key_of(save, rank), ""); // releases the memory of the server
  store_.set(folder_key(save), "");
  return out;
}

void CheckpointCommit::compare_plugins(const PartOrError& own, const PartOrError& other, int rank) const {
  for (const auto& [use, checksum] : own.plugins)
    if (const auto found = other.plugins.find(use); found == other.plugins.end() || found->second != checksum)
      throw Error(text("save() of plugin \"{}\" returned a different text on rank {} than on rank 0",
                       plugin_used_as(run_, use).name, rank),
                  {}, "this is a defect of the plugin: its state must be the same on all ranks");
}

checkpoint::SavedPart CheckpointCommit::merged(const fs::path& partial, const PartOrError& own,
                                               std::span<const std::string> others) const {
  checkpoint::PartMerger all;
  std::string failure;
  const auto add = [&](int rank, const PartOrError& of) {
    if (!of.error.empty()) {
      if (failure.empty()) failure = text("rank {}: {}", rank, of.error);
      return;
    }
    check_visible(partial, of.part, rank);
    compare_plugins(own, of, rank);
    all.add(of.part);
  };
  add(0, own);
  int rank = 0;
  for (const std::string& report : others) {
    ++rank;
    TRIAX_REQUIRE(!report.empty(), "rank {} has reported an empty text", rank);
    add(rank, part_from(report, rank));
  }
  if (!failure.empty()) throw Error(failure);
  return all.take();
}

checkpoint::Manifest CheckpointCommit::manifest(const checkpoint::TrainingState& state,
                                                checkpoint::SavedPart content) const {
  checkpoint::Manifest out;
  out.training = state;
  out.data = data_;
  out.tokens = state.samples * sequence_;
  out.created = checkpoint::creation_time();
  out.engine = TRIAX_VERSION;
  for (const auto& [use, choice] : run_.plugins()) out.plugins[use] = plugin_text(*choice);
  for (const Axis& axis : layout_.axes()) out.layout[axis.name] = layout_.size(axis.name);
  out.config = run_.values;
  out.content = std::move(content);
  return out;
}

} // namespace triax::train
