# Models with random effects by lme4 (maximum likelihood), beside benchmarks/random_effects.py:
#   Rscript benchmarks/random_effects.R      (R with the packages lme4 and nlme)
# R 4.2.2, lme4 of Debian 12; moestat's log-likelihoods differ by less than 1e-9 in each:
#   sleepstudy slope -875.969672232, || -876.001627570, intercept -897.039321503
#   Orthodont intercept -217.428242547, slope -216.417580482; Oxboys -362.983844547
#   BodyWeight -606.851203094; RatPupWeight -198.740596222
suppressMessages({library(lme4); library(nlme, exclude=c("lmList"))})
d <- function(x) as.data.frame(x)
f <- function(name, form, data) cat(sprintf("%s: %.9f\n", name, as.numeric(logLik(lmer(form, data, REML=FALSE, control=lmerControl(optimizer="bobyqa", optCtrl=list(rhoend=1e-10)))))))
f("sleepstudy slope", Reaction ~ Days + (1 + Days | Subject), sleepstudy)
f("sleepstudy ||", Reaction ~ Days + (1 + Days || Subject), sleepstudy)
f("sleepstudy 1", Reaction ~ Days + (1 | Subject), sleepstudy)
O <- d(Orthodont); O$Sex <- factor(as.character(O$Sex)); O$Subject <- factor(as.character(O$Subject))
f("Orthodont 1", distance ~ age + Sex + (1 | Subject), O)
f("Orthodont slope", distance ~ age + Sex + (1 + age | Subject), O)
B <- d(Oxboys); B$Subject <- factor(as.character(B$Subject))
f("Oxboys", height ~ age + (1 + age | Subject), B)
W <- d(BodyWeight); W$Rat <- factor(as.character(W$Rat))
f("BodyWeight", weight ~ Time + (1 + Time | Rat), W)
R <- d(RatPupWeight); R$Litter <- factor(as.character(R$Litter))
f("RatPupWeight", weight ~ sex + Lsize + (1 | Litter), R)
# Nested groups: Pastes -123.997232931, deviations 1.095059609, 2.904077601, .823407552; ours are the
# same to the last digit
f("Pastes", strength ~ 1 + (1 | batch/cask), Pastes)
