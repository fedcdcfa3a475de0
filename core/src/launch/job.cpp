// SPDX-License-Identifier: Apache-2.0
#include "launch/job.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include "base/printable.hpp"
#include "launch/failure_report.hpp"

namespace triax::launch {

namespace {

constexpr const char* kRefusals = "launch/refusals"; // errors of rank 0
constexpr const char* kKeys = "launch/keys";         // configuration values of rank 0
constexpr const char* kRefused = "launch/refused";   // number of ranks with errors
constexpr const char* kFailures = "launch/failures"; // number of ranks that have failed
constexpr double kReportMargin =
    10; // seconds; other ranks wait this much longer than the one that reports missing ranks
constexpr auto kRankExitGrace =
    std::chrono::seconds(5); // for other ranks to end, after a failure or a start that was refused
constexpr auto kVerdict = std::chrono::seconds(1); // for the first rank that failed to report
constexpr auto kMoment = std::chrono::milliseconds(20);
constexpr auto kAfterStart = std::chrono::milliseconds(200); // period of checking for rejected connections

control::JobToken token_for(const config::LaunchKeys& launch) {
  if (const char* secret = std::getenv("TRIAX_JOB_TOKEN"); secret && *secret) return control::JobToken(secret);
  return launch.token_file.empty() ? control::JobToken() : control::JobToken::from_file(launch.token_file);
}

/// The host of the job server, which is this one. Errors name the variable that names another.
std::string interface_of(const Environment& environment) {
  try {
    os::address_of_interface(environment.server.host);
  } catch (const Error& error) {
    if (environment.server_variable.empty()) throw;
    throw Error(text("{} = {}: {}, on which rank 0 runs", environment.server_variable,
                     shortened(environment.server.host), error.message()),
                text("environment of {}", name_of(environment.launcher)),
                text("set MASTER_ADDR on all ranks to the name or an address of rank 0's machine, or set "
                     "launch.interface\n  {}",
                     error.hint()));
  }
  return environment.server.host;
}

/// "key=value" lines. Keys and values contain no line break.
std::string to_lines(const std::map<std::string, std::string>& keys) {
  std::string out;
  for (const auto& [key, value] : keys) out += text("{}={}\n", key, value);
  return out;
}

std::map<std::string, std::string> from_lines(const std::string& lines) {
  std::map<std::string, std::string> out;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos)
      throw Error(text("the configuration of rank 0 has an invalid line: \"{}\"", printable(line.substr(0, 100))),
                  "launch",
                  "run the same build of Triax on all hosts, and check that only ranks of this job use its port");
    out[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return out;
}

/// The process of the server knows a failure before its flag is set.
bool has_failed(const control::JobAbort& flag, const control::Server* server) {
  return flag.raised() || (server && server->failure());
}

} // namespace

Job::Job(const JobRequest& request, os::StopSignals& signals)
    : request_(request), token_(token_for(request.launch)), signals_(signals) {
  const Environment& environment = request_.environment;
  if (!environment.serves || environment.rank != 0) return;
  const int port = request_.launch.port != 0 ? request_.launch.port : environment.server.port;
  const std::string& own = request_.launch.interface;
  const std::string interface = own.empty() ? interface_of(environment) : own;
  server_ = std::make_unique<control::Server>(
      control::ServerRequest{interface, port, environment.world, token_, request_.stall_timeout_s});
}

Job::~Job() = default;

void Job::enter() {
  const Environment& environment = request_.environment;
  control::ClientRequest client;
  client.server = environment.server;
  if (environment.serves && request_.launch.port != 0) client.server.port = request_.launch.port;
  if (server_) {
    server_->start();
    client.server = server_->address();
    track_start();
  }
  client.server_variable = environment.server_variable;
  client.token = token_;
  client.rank = environment.rank;
  client.world = environment.world;
  client.start_timeout_s = request_.launch.start_timeout_s;
  client.silence_s = request_.stall_timeout_s;
  client.position = [this] { return position(); };
  client.progress = [this] { return progress(); };
  client.before_end = [this] { report_before_end(); };
  client.on_stop = [this](int signal) { signals_.ask(signal); };
  try {
    client_ = std::make_unique<control::Client>(client, abort_);
  } catch (const Error& error) {
    // The ranks that have joined must learn the cause. Otherwise they only see that the server closed.
    if (server_) server_->fail({environment.rank, false, error.what()});
    throw;
  }
}

void Job::track_start() {
  const auto track = [this](const std::stop_token& stop) {
    StartTracker tracker(*server_, request_.environment.world, request_.start);
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) { // also after the start: the server may reject connections at any time
      tracker.look();
      stopped.wait_for(lock, stop, tracker.over() ? kAfterStart : kMoment, [] { return false; });
    }
    tracker.finish();
  };
  try {
    tracking_ = std::jthread(track);
  } catch (const std::system_error&) { // without a thread, the start shows no progress
  }
}

control::Client& Job::client() const {
  TRIAX_REQUIRE(client_, "rank {} has not joined its job", request_.environment.rank);
  return *client_;
}

std::optional<std::string> Job::wait_for_start(const Candidate& candidate) {
  const bool is_rank_0 = request_.environment.rank == 0;
  const auto agreed = [&]() -> std::optional<std::string> {
    if (is_rank_0) {
      client().set(kRefusals, candidate.refused);
      client().set(kKeys, to_lines(candidate.keys));
    }
    std::string refused = candidate.refused;
    if (refused.empty() && !is_rank_0) refused = difference(candidate);
    if (!refused.empty()) client().add(kRefused, 1);
    wait_for_ranks();
    if (client().add(kRefused, 0) == 0) return std::nullopt;
    const std::string text_of_refusals = client().get(kRefusals, deadline_in(request_.launch.start_timeout_s));
    return is_rank_0 || refused != text_of_refusals ? refused : std::string();
  };
  try {
    return agreed();
  } catch (const Error& error) {
    if (!has_failed(abort_, server_.get())) throw;
    throw Error(error.message(), {}, error.hint()); // not a problem of the store
  }
}

/// The values in which this rank's run differs from rank 0's, if rank 0 has a run.
std::string Job::difference(const Candidate& candidate) {
  const double timeout_s = request_.launch.start_timeout_s + kReportMargin;
  const auto theirs = from_lines(client().get(kKeys, deadline_in(timeout_s)));
  if (theirs.empty() || theirs == candidate.keys) return {};
  std::string out = text("the configuration of rank {} differs from rank 0's:", request_.environment.rank);
  const auto value = [](const std::map<std::string, std::string>& keys, const std::string& key) {
    const auto found = keys.find(key);
    return found == keys.end() ? std::string("nothing") : found->second;
  };
  std::map<std::string, std::string> all = theirs;
  all.insert(candidate.keys.begin(), candidate.keys.end());
  for (const auto& [key, any] : all)
    if (value(candidate.keys, key) != value(theirs, key))
      out += text("\n  {} = {}; on rank 0 it is {}", key, value(candidate.keys, key), value(theirs, key));
  return out + "\n  start all ranks with one launch, the same TOML and --set, and equal copies of the corpora";
}

void Job::wait_for_ranks() {
  try {
    client().barrier("launch/start", deadline_in(request_.launch.start_timeout_s + (server_ ? 0 : kReportMargin)));
  } catch (const Error& error) {
    tracking_ = {};                               // its line must not appear among the messages below
    if (has_failed(abort_, server_.get())) throw; // no rank is late
    std::string message = error.message();
    if (const control::Rejections rejections = server_ ? server_->rejections() : control::Rejections();
        rejections.total > 0)
      message += "; the job server " + control::to_text(rejections);
    const Error missing(message, {},
                        text("{} = {} s is the time limit for all ranks to join", request_.start_timeout_name,
                             request_.launch.start_timeout_s));
    abort_.raise(request_.environment.rank, missing.what());
    if (const std::vector<int> absent = server_ ? server_->missing() : std::vector<int>(); !absent.empty())
      server_->fail(not_joined(absent, request_.launch.start_timeout_s)); // the cause, for the report
    throw missing;
  }
}

void Job::observe(const ObservedRank* rank) {
  const std::lock_guard lock(mutex_);
  if (!rank && rank_) {
    last_position_ = rank_->position_and_call();
    last_progress_ = rank_->progress();
  }
  rank_ = rank;
}

void Job::end_at(const std::string& position) {
  constexpr double kSend_s = 1;
  {
    const std::lock_guard lock(mutex_);
    rank_ = nullptr;
    last_position_ = position;
  }
  if (client_) client_->send_position(kSend_s);
}

std::string Job::position() const {
  const std::lock_guard lock(mutex_);
  return rank_ ? rank_->position_and_call() : last_position_;
}

control::RankProgress Job::progress() const {
  const std::lock_guard lock(mutex_);
  return rank_ ? rank_->progress() : last_progress_;
}

void Job::set_before_end(std::function<void()> report) {
  const std::lock_guard lock(mutex_);
  before_end_ = std::move(report);
}

/// Holds the mutex, so that the object that the function refers to cannot be destroyed meanwhile.
void Job::report_before_end() {
  const std::lock_guard lock(mutex_);
  if (before_end_) before_end_();
}

bool Job::is_first_failure() {
  tracking_ = {};
  bool answered = false;
  try {
    if (client().add(kFailures, 1, deadline_in(std::chrono::duration<double>(kRankExitGrace).count())) == 1)
      return true;
    answered = true;
  } catch (const Error&) { // the failure is already known, or the server does not answer
    answered = false;
  }
  // The server should receive the report of the first rank before this one.
  const auto began = Clock::now();
  while (!abort_.raised() && Clock::now() - began < kVerdict) std::this_thread::sleep_for(kMoment);
  return !answered && !abort_.raised();
}

void Job::leave() {
  tracking_ = {};
  if (client_) client_->leave(); // null: enter() failed
  if (!server_) return;
  const auto began = Clock::now();
  const auto has_connected_ranks = [this] {
    const std::vector<control::RankStatus> ranks = server_->ranks();
    return std::any_of(ranks.begin() + 1, ranks.end(),
                       [](const auto& rank) { return rank.state == control::RankStatus::State::joined; });
  };
  while (has_connected_ranks() && Clock::now() - began < kRankExitGrace) std::this_thread::sleep_for(kMoment);
}

void Job::finish(Deadline deadline) {
  client().barrier("launch/end", deadline);
}

} // namespace triax::launch
