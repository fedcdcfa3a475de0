// SPDX-License-Identifier: Apache-2.0
#include "plan/profile_check.hpp"

#include <array>
#include <fstream>
#include <map>
#include <span>

#include "checksum/checksum.hpp"
#include "os/machine.hpp"
#include "plan/list_prediction.hpp"
#include "plugin/loader.hpp"
#include "triax/precision.hpp"

namespace triax::app {

namespace {

class ProfileCheck {
 public:
  ProfileCheck(const cost::Profile& profile, const std::string& file) : profile_(profile), file_(file) {}

  Refusals run(const config::RunConfig* run) {
    check_machine();
    if (run) {
      check_choice("kernels.plugin", profile_.kernels, run->kernels);
      std::map<std::string, const config::PluginChoice*> communicators; // by the key that names it for its axes
      for (const auto& [axis, choice] : run->comm) communicators[choice.named_in + ".plugin"] = &choice;
      for (const auto& [key, choice] : communicators) check_choice(key, profile_.comm, *choice);
      const std::string precision(precision_name(run->train.compute));
      if (precision != profile_.precision)
        refuse("train.precision", text("train.precision {}, but the run has {}", profile_.precision, precision));
    } else {
      check_installed(profile_.kernels);
      check_installed(profile_.comm);
      if (profile_.precision != kListPrecision)
        out_.add(make_refusal(ErrorCode::kConflict, {"--predict"},
                              "{}: measured with train.precision {}, but --predict predicts {}", file_,
                              profile_.precision, kListPrecision)
                     .with_hint("measure again: triax plan RUN.toml --set train.precision={} --calibrate {}",
                                kListPrecision, file_));
    }
    return std::move(out_);
  }

 private:
  void refuse(const std::string& key, const std::string& what) {
    out_.add(make_refusal(ErrorCode::kConflict, {key}, "{}: measured with {}", file_, what)
                 .with_hint("measure again: triax plan RUN.toml --calibrate {}", file_));
  }

  void check_machine() {
    const os::Machine machine = os::this_machine();
    if (machine.processor != profile_.processor || machine.cores != profile_.cores)
      refuse("profile.processor", text("{} cores of {}, but this machine has {} of {}", profile_.cores,
                                       profile_.processor, machine.cores, machine.processor));
  }

  void check_choice(const std::string& key, const cost::MeasuredPlugin& measured, const config::PluginChoice& choice) {
    if (choice.name != measured.name)
      return refuse(key, text("{}, but the run has {} = \"{}\"", measured.name, key, choice.name));
    if (!choice.library) return refuse(key, text("{}, which is not installed here", measured.name));
    check_build(measured, choice.library->file);
  }

  void check_installed(const cost::MeasuredPlugin& measured) {
    const std::optional<plugin::Found> found = plugin::try_find(measured.name, plugin::search_folders({}));
    if (!found) return refuse("profile", text("{}, which is not installed here", measured.name));
    check_build(measured, found->file);
  }

  void check_build(const cost::MeasuredPlugin& measured, const std::filesystem::path& library) {
    if (const std::string build = build_of(library); build != measured.build)
      refuse("profile", text("build {} of {}, but {} is build {}", measured.build, measured.name, library, build));
  }

  const cost::Profile& profile_;
  const std::string& file_;
  Refusals out_;
};

} // namespace

std::string build_of(const std::filesystem::path& library) {
  std::ifstream in(library, std::ios::binary);
  std::array<char, 1 << 16> part{};
  Checksum sum;
  while (in.read(part.data(), part.size()) || in.gcount() > 0)
    sum.add(std::as_bytes(std::span(part.data(), static_cast<std::size_t>(in.gcount()))));
  if (!in.eof()) throw Error("cannot be read", library.string(), "check its permissions");
  return sum.text();
}

Refusals check_profile(const cost::Cluster& cluster, const std::string& file, const config::RunConfig* run) {
  if (!cluster.profile) return {};
  return ProfileCheck(*cluster.profile, file).run(run);
}

} // namespace triax::app
