// SPDX-License-Identifier: Apache-2.0
// Checks of operations over a vocabulary (embedding, cross-entropy) and of the optimizer operations: shapes and types.
#include "kernels/argument_check.hpp"

namespace triax::kernels {

namespace {

void check_embedding(const Check& check, const Named& table, const Named& rows, const Named& tokens, std::int64_t begin,
                     std::int64_t valid) {
  check.data(rows);
  check.contiguous(table);
  check.rank(table, 2);
  check.require(table.view.size(1) == rows.view.size(-1), "{} and {} differ in width: {} and {}", table, rows,
                table.view.size(1), rows.view.size(-1));
  check.type(tokens, DType::i32);
  check.count(tokens, rows_of(rows.view), "rows", rows);
  check.require(begin >= 0 && valid >= 0 && valid <= table.view.size(0), "tokens [{}, {}) do not fit the {} rows of {}",
                begin, begin + valid, table.view.size(0), table);
}

/// Floating logits [rows, v] with `valid` valid columns.
void check_logits(const Check& check, const Named& logits, std::int64_t valid) {
  check.data(logits);
  check.require(valid >= 0 && valid <= logits.view.size(-1), "valid = {} is not within the {} columns of {}", valid,
                logits.view.size(-1), logits);
}

void check_targets(const Check& check, const Named& targets, const Named& logits, std::int64_t begin) {
  check.type(targets, DType::i32);
  check.count(targets, rows_of(logits.view), "rows", logits);
  check.require(begin >= 0, "begin = {} must not be negative", begin);
}

void check_loss(const Check& check, const Named& loss, const Named& rows) {
  check.type(loss, DType::f64);
  check.contiguous(loss);
  check.require(loss.view.elements() > 0 && rows.view.elements() % loss.view.elements() == 0,
                "the {} rows of {} are not divisible by the samples of {}", rows.view.elements(), rows, loss);
}

void check_master(const Check& check, const Named& master) {
  check.data(master);
  check.require(master.view.dtype() == DType::f32 || master.view.dtype() == DType::f64, "{} must be f32 or f64",
                master);
}

void check_state(const Check& check, const Named& state, const Named& master) {
  check.count(state, master.view.elements(), "elements", master);
  check.same_type(state, master);
}

void check_working(const Check& check, const Named& working, const Named& master) {
  if (working.view.empty()) return;
  check.count(working, master.view.elements(), "elements", master);
  check.require(is_floating(working.view.dtype()), "{} must be of a floating type", working);
}

void check_adamw(const Check& check, const AdamW& args) {
  const Named master{"master", args.master};
  check_master(check, master);
  check_state(check, {"gradient", args.gradient}, master);
  check_state(check, {"m", args.m}, master);
  check_state(check, {"v", args.v}, master);
  check_working(check, {"working", args.working}, master);
  check.require(args.beta1 >= 0 && args.beta1 < 1, "beta1 must be in [0, 1), got {}", args.beta1);
  check.require(args.beta2 >= 0 && args.beta2 < 1, "beta2 must be in [0, 1), got {}", args.beta2);
  check.require(args.eps > 0, "eps must be positive, got {}", args.eps);
}

} // namespace

void check(const EmbedFwd& args) {
  const Check check(Op::embed_fwd);
  const Named y{"y", args.y}, table{"table", args.table};
  check_embedding(check, table, y, {"tokens", args.tokens}, args.begin, args.valid);
  check.same_type(table, y);
}

void check(const EmbedBwd& args) {
  const Check check(Op::embed_bwd);
  const Named dy{"dy", args.dy}, dtable{"dtable", args.dtable};
  check_embedding(check, dtable, dy, {"tokens", args.tokens}, args.begin, args.valid);
  check.accumulator_type(dtable, dy);
}

void check(const XentMax& args) {
  const Check check(Op::xent_max);
  const Named logits{"logits", args.logits};
  check_logits(check, logits, args.valid);
  check.statistic({"max", args.max}, logits);
}

void check(const XentSums& args) {
  const Check check(Op::xent_sums);
  const Named logits{"logits", args.logits};
  check_logits(check, logits, args.valid);
  check.statistic({"max", args.max}, logits);
  check.statistic({"sum_exp", args.sum_exp}, logits);
  check.statistic({"target_logit", args.target_logit}, logits);
  check_targets(check, {"targets", args.targets}, logits, args.begin);
}

void check(const XentLoss& args) {
  const Check check(Op::xent_loss);
  const Named sum_exp{"sum_exp", args.sum_exp}, target_logit{"target_logit", args.target_logit};
  check.data(sum_exp);
  check.require(args.sum_exp.dtype() == DType::f32 || args.sum_exp.dtype() == DType::f64, "{} must be f32 or f64",
                sum_exp);
  check_state(check, target_logit, sum_exp);
  check_loss(check, {"loss", args.loss}, sum_exp);
}

void check(const XentBwd& args) {
  const Check check(Op::xent_bwd);
  const Named logits{"logits", args.logits};
  check_logits(check, logits, args.valid);
  check.statistic({"max", args.max}, logits);
  check.statistic({"sum_exp", args.sum_exp}, logits);
  check_targets(check, {"targets", args.targets}, logits, args.begin);
}

void check(const XentFused& args) {
  const Check check(Op::xent_fused);
  const Named logits{"logits", args.logits}, sum_exp{"sum_exp", args.sum_exp};
  check_logits(check, logits, args.valid);
  check.require(args.valid > 0, "valid = 0: {} has no valid column", logits);
  check.statistic({"max", args.max}, logits);
  check.statistic(sum_exp, logits);
  check.statistic({"target_logit", args.target_logit}, logits);
  check_targets(check, {"targets", args.targets}, logits, 0);
  check_loss(check, {"loss", args.loss}, sum_exp);
}

void check(const AdamW& args) {
  check_adamw(Check(Op::adamw), args);
}

void check(const MultiAdamW& args) {
  for (const AdamW& shard : args.shards) check_adamw(Check(Op::multi_adamw), shard);
}

void check(const Sgd& args) {
  const Check check(Op::sgd);
  const Named master{"master", args.master}, velocity{"velocity", args.velocity};
  check_master(check, master);
  check_state(check, {"gradient", args.gradient}, master);
  check.require(args.momentum >= 0 && args.momentum < 1, "momentum must be in [0, 1), got {}", args.momentum);
  if (args.momentum != 0 || !args.velocity.empty()) check_state(check, velocity, master);
  check_working(check, {"working", args.working}, master);
}

} // namespace triax::kernels
