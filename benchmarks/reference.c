/* What a C programmer would write by hand for two mixtures of experts, as a yardstick.
 *
 * The same mathematics as moestat, in log-space: log p = LSE(a + l) - LSE(a), its score and its
 * Hessian, in one pass over the data.  Unlike moestat, everything is fixed at compile time: the
 * number of atoms, one input, the gate, the expert and the likelihood.
 *
 * Samples go through in blocks that stay in the first cache level, and every inner loop runs over
 * the samples of a block, so that gcc vectorises it; with -ffast-math its exp, log and log1p are
 * then the vector functions of glibc's libmvec.
 *
 * Parameters are packed as in moestat, five per atom.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#ifndef BLOCK
#define BLOCK 256
#endif
#define ROW double __attribute__((aligned(64)))
#define CHANNELS 3 /* of one atom */
#define PER_ATOM 5 /* parameters */

/* Replace log-scores of k atoms by probabilities; leave their log-sum-exp in lse.
 *
 * Below e^-340 nothing counts; without the bound libmvec would fall back to scalar code for
 * arguments out of its range, and products would be subnormal. */
static inline void normalise(const int k, double score[][BLOCK], const int m, double *restrict lse)
{
    ROW total[BLOCK];
    for (int b = 0; b < m; b++) {
        double top = score[0][b];
        for (int i = 1; i < k; i++)
            top = score[i][b] > top ? score[i][b] : top;
        lse[b] = top;
        total[b] = 0.0;
    }
    for (int i = 0; i < k; i++)
        for (int b = 0; b < m; b++) {
            const double below = score[i][b] - lse[b];
            score[i][b] = exp(below > -340.0 ? below : -340.0);
            total[b] += score[i][b];
        }
    for (int b = 0; b < m; b++) {
        lse[b] += log(total[b]);
        total[b] = 1.0 / total[b];
    }
    for (int i = 0; i < k; i++)
        for (int b = 0; b < m; b++)
            score[i][b] *= total[b];
}

/* Sums over the block of h, h x and h x^2, as many as the two channels have. */
static inline void add_pair(const int m, const double *restrict h, const double *restrict x,
                            const int p, const int p_width, const int q, const int q_width,
                            const int n_params, double *restrict hessian)
{
    double s0 = 0.0, s1 = 0.0, s2 = 0.0;
    const int order = p_width + q_width - 2;
    if (order == 0) {
        for (int b = 0; b < m; b++)
            s0 += h[b];
    } else if (order == 1) {
        for (int b = 0; b < m; b++) {
            s0 += h[b];
            s1 += h[b] * x[b];
        }
    } else {
        for (int b = 0; b < m; b++) {
            const double hx = h[b] * x[b];
            s0 += h[b];
            s1 += hx;
            s2 += hx * x[b];
        }
    }
    const double sums[3] = {s0, s1, s2};
    for (int f = 0; f < p_width; f++)
        for (int g = 0; g < q_width; g++) {
            hessian[(p + f) * n_params + q + g] += sums[f + g];
            if (p != q)
                hessian[(q + g) * n_params + p + f] += sums[f + g];
        }
}

/* The Hessian from each atom's own curvature (channel pairs), and the covariances between atoms:
 * tilted rows are sqrt(w) tau d(a + l), gated ones sqrt(w) pi d a (channels below n_gate). */
static inline void add_hessian(const int k, const int m, const int n_gate, const int *width,
                               const int *offset, double own[][6][BLOCK],
                               double tilted[][CHANNELS][BLOCK], double gated[][CHANNELS][BLOCK],
                               const double *restrict x, double *restrict hessian)
{
    const int n_params = PER_ATOM * k;
    ROW h[BLOCK];
    for (int i = 0; i < k; i++)
        for (int c = 0; c < CHANNELS; c++)
            for (int j = 0; j <= i; j++)
                for (int e = 0; e < (i == j ? c + 1 : CHANNELS); e++) {
                    const double *restrict ti = tilted[i][c], *restrict tj = tilted[j][e];
                    const double *restrict gi = gated[i][c], *restrict gj = gated[j][e];
                    const double *restrict o = own[i][c * (c + 1) / 2 + e];
                    const int both = c < n_gate && e < n_gate;
                    if (i == j && both)
                        for (int b = 0; b < m; b++)
                            h[b] = o[b] - ti[b] * tj[b] + gi[b] * gj[b];
                    else if (i == j)
                        for (int b = 0; b < m; b++)
                            h[b] = o[b] - ti[b] * tj[b];
                    else if (both)
                        for (int b = 0; b < m; b++)
                            h[b] = gi[b] * gj[b] - ti[b] * tj[b];
                    else
                        for (int b = 0; b < m; b++)
                            h[b] = -ti[b] * tj[b];
                    add_pair(m, h, x, PER_ATOM * i + offset[c], width[c], PER_ATOM * j + offset[e],
                             width[e], n_params, hessian);
                }
}

/* Gaussian experts with a softmax gate: atoms (beta0, beta1, b, a, log nu). */
#define GAUSSIAN_ATOMS 3
double gaussian_softmax(ptrdiff_t n, const double *x_all, const double *y_all, const double *w_all,
                        const double *theta, int order, double *score, double *hessian)
{
    enum { k = GAUSSIAN_ATOMS, n_params = PER_ATOM * k };
    static const int width[] = {2, 2, 1}, offset[] = {0, 2, 4};
    ROW prior[k][BLOCK], posterior[k][BLOCK], residual[k][BLOCK];
    ROW lse_prior[BLOCK], lse_posterior[BLOCK];
    ROW own[k][6][BLOCK], tilted[k][CHANNELS][BLOCK], gated[k][CHANNELS][BLOCK];
    double value = 0.0, precision[k], top[k];
    for (int i = 0; i < k; i++) {
        const double t = theta[PER_ATOM * i + 4];
        precision[i] = exp(-t);
        top[i] = -0.91893853320467274178 - 0.5 * t;
    }
    if (order > 0)
        memset(score, 0, n_params * sizeof(double));
    if (order > 1)
        memset(hessian, 0, n_params * n_params * sizeof(double));
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        const int m = n - start < BLOCK ? (int)(n - start) : BLOCK;
        const double *restrict x = x_all + start, *restrict y = y_all + start,
                     *restrict w = w_all + start;
        for (int i = 0; i < k; i++) {
            const double *p = theta + PER_ATOM * i;
            const double b0 = p[0], b1 = p[1], b_ = p[2], a_ = p[3], nu = precision[i], t = top[i];
            for (int b = 0; b < m; b++) {
                const double r = y[b] - b_ - a_ * x[b], a = b0 + b1 * x[b];
                residual[i][b] = r;
                prior[i][b] = a;
                posterior[i][b] = a + t - 0.5 * nu * r * r;
            }
        }
        normalise(k, posterior, m, lse_posterior);
        normalise(k, prior, m, lse_prior);
        for (int b = 0; b < m; b++)
            value += w[b] * (lse_posterior[b] - lse_prior[b]);
        if (order == 0)
            continue;
        for (int i = 0; i < k; i++) {
            double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0, s4 = 0.0;
            const double nu = precision[i];
            for (int b = 0; b < m; b++) {
                const double r = residual[i][b], tau = w[b] * posterior[i][b];
                const double gate = tau - w[b] * prior[i][b], mean = nu * tau * r;
                s0 += gate;
                s1 += gate * x[b];
                s2 += mean;
                s3 += mean * x[b];
                s4 += mean * r - tau;
            }
            double *s = score + PER_ATOM * i;
            s[0] += s0, s[1] += s1, s[2] += s2, s[3] += s3, s[4] += 0.5 * s4;
        }
        if (order == 1)
            continue;
        for (int i = 0; i < k; i++) {
            const double nu = precision[i];
            for (int b = 0; b < m; b++) {
                const double r = residual[i][b], root = sqrt(w[b]);
                const double tau = w[b] * posterior[i][b];
                const double mean = nu * r, scale = 0.5 * (mean * r - 1.0);
                tilted[i][0][b] = root * posterior[i][b];
                tilted[i][1][b] = root * posterior[i][b] * mean;
                tilted[i][2][b] = root * posterior[i][b] * scale;
                gated[i][0][b] = root * prior[i][b];
                own[i][0][b] = tau - w[b] * prior[i][b];
                own[i][1][b] = tau * mean;
                own[i][2][b] = tau * (mean * mean - nu);
                own[i][3][b] = tau * scale;
                own[i][4][b] = tau * mean * (scale - 1.0);
                own[i][5][b] = tau * (scale * scale - 0.5 * mean * r);
            }
        }
        add_hessian(k, m, 1, width, offset, own, tilted, gated, x, hessian);
    }
    return value;
}

/* Two-class logistic experts with a modified sigmoid gate: atoms (gamma, beta, alpha, b, a). */
#define SIGMOID_ATOMS 4
double multinomial_sigmoid(ptrdiff_t n, const double *x_all, const ptrdiff_t *y_all,
                           const double *w_all, const double *theta, int order, double *score,
                           double *hessian)
{
    enum { k = SIGMOID_ATOMS, n_params = PER_ATOM * k };
    static const int width[] = {1, 2, 2}, offset[] = {0, 1, 3};
    ROW prior[k][BLOCK], posterior[k][BLOCK], down[k][BLOCK], left[k][BLOCK];
    ROW lse_prior[BLOCK], lse_posterior[BLOCK];
    ROW own[k][6][BLOCK], tilted[k][CHANNELS][BLOCK], gated[k][CHANNELS][BLOCK];
    double value = 0.0;
    if (order > 0)
        memset(score, 0, n_params * sizeof(double));
    if (order > 1)
        memset(hessian, 0, n_params * n_params * sizeof(double));
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        const int m = n - start < BLOCK ? (int)(n - start) : BLOCK;
        const double *restrict x = x_all + start, *restrict w = w_all + start;
        const ptrdiff_t *restrict y = y_all + start;
        for (int i = 0; i < k; i++) {
            const double *p = theta + PER_ATOM * i;
            const double gamma = p[0], b0 = p[1], b1 = p[2], b_ = p[3], a_ = p[4];
            for (int b = 0; b < m; b++) {
                const double s = b0 + b1 * x[b], e = exp(-fabs(s));
                prior[i][b] = gamma + (s < 0.0 ? s : 0.0) - log1p(e);
                down[i][b] = (s < 0.0 ? 1.0 : e) / (1.0 + e); /* sigma(-s) */
            }
            /* The density of class 1 is sigma(eta), that of class 2 is sigma(-eta). */
            for (int b = 0; b < m; b++) {
                const double eta = b_ + a_ * x[b], s = y[b] == 0 ? eta : -eta, e = exp(-fabs(s));
                const double miss = (s < 0.0 ? 1.0 : e) / (1.0 + e);
                posterior[i][b] = prior[i][b] + (s < 0.0 ? s : 0.0) - log1p(e);
                left[i][b] = y[b] == 0 ? miss : -miss; /* 1[y = 1] - sigma(eta) */
            }
        }
        normalise(k, posterior, m, lse_posterior);
        normalise(k, prior, m, lse_prior);
        for (int b = 0; b < m; b++)
            value += w[b] * (lse_posterior[b] - lse_prior[b]);
        if (order == 0)
            continue;
        for (int i = 0; i < k; i++) {
            double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0, s4 = 0.0;
            for (int b = 0; b < m; b++) {
                const double tau = w[b] * posterior[i][b];
                const double mass = tau - w[b] * prior[i][b];
                const double gate = mass * down[i][b], class = tau * left[i][b];
                s0 += mass;
                s1 += gate;
                s2 += gate * x[b];
                s3 += class;
                s4 += class * x[b];
            }
            double *s = score + PER_ATOM * i;
            s[0] += s0, s[1] += s1, s[2] += s2, s[3] += s3, s[4] += s4;
        }
        if (order == 1)
            continue;
        for (int i = 0; i < k; i++)
            for (int b = 0; b < m; b++) {
                const double root = sqrt(w[b]), tau = w[b] * posterior[i][b];
                const double mass = tau - w[b] * prior[i][b];
                const double g = down[i][b], u = left[i][b], t = root * posterior[i][b];
                tilted[i][0][b] = t;
                tilted[i][1][b] = t * g;
                tilted[i][2][b] = t * u;
                gated[i][0][b] = root * prior[i][b];
                gated[i][1][b] = root * prior[i][b] * g;
                own[i][0][b] = mass;
                own[i][1][b] = mass * g;
                own[i][2][b] = mass * g * (2.0 * g - 1.0);
                own[i][3][b] = tau * u;
                own[i][4][b] = tau * g * u;
                own[i][5][b] = tau * (u * u - fabs(u) * (1.0 - fabs(u)));
            }
        add_hessian(k, m, 2, width, offset, own, tilted, gated, x, hessian);
    }
    return value;
}
