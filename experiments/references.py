"""Everything that the project cites, by author and year."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["REFERENCES", "Reference", "cited_in", "page"]


@dataclass(frozen=True)
class Reference:
    """One cited work.

    Parameters
    ----------
    label : str
        How it is cited, authors and year: ``Pham et al. (2026)``.
    authors, title, where : str
        As printed; `where` is the journal, proceedings or publisher.
    identifier : str
        ``arXiv ...`` or ``doi ...``; empty where none is known.
    folder : str
        Folder of `experiments`, and first word of the experiments, of one of the five papers.
    note : str
        What a reader of the citations should know.
    """

    label: str
    authors: str
    title: str
    where: str
    identifier: str = ""
    folder: str = ""
    note: str = ""


_WORKS = (
    Reference(
        "Pham et al. (2026)",
        "T. M. Pham, T. Cao, V. Nguyen, H. Nguyen, N. Ho and A. Rinaldo",
        "Rethinking multinomial logistic mixture of experts with sigmoid gating function",
        "manuscript of February 3, 2026",
        folder="mlmoe",
    ),
    Reference(
        "Yan et al. (2025)",
        "F. Yan, H. Nguyen, P. Akbarian, N. Ho and A. Rinaldo",
        "Sigmoid self-attention is better than softmax self-attention: a mixture-of-experts"
        " perspective",
        "manuscript of February 4, 2025",
        folder="attention",
    ),
    Reference(
        "Nguyen et al. (2025)",
        "N. V. Nguyen, H. Nguyen, Q. Pham, V. Nguyen, S. Ramasamy and N. Ho",
        "CompeteSMoE - Statistically guaranteed mixture of experts training via competition",
        "preprint",
        "arXiv 2505.13380",
        folder="compete",
        note="Cited from an anonymous version under double-blind review; its numbers of equations"
        " and sections may differ from the preprint's.",
    ),
    Reference(
        "Pham et al. (2024)",
        "Q. Pham, G. Do, H. Nguyen, T. Nguyen, C. Liu, M. Sartipi, B. T. Nguyen, S. Ramasamy,"
        " X. Li, S. Hoi and N. Ho",
        "CompeteSMoE - Effective sparse mixture of experts training via competition",
        "preprint",
        "arXiv 2402.02526",
        folder="compete",
        note="The first version of Nguyen et al. (2025).",
    ),
    Reference(
        "Duy et al. (n.d.)",
        "D. H. Duy, T. S. Au Yeung, J. Yang, K. C. Cheung and S. See",
        "On the impact of expert count in mixture of experts",
        "manuscript without a date",
        folder="expert_count",
    ),
    Reference(
        "Nguyen et al. (2024)",
        "H. Nguyen, P. Akbarian, T. Nguyen and N. Ho",
        "A general theory for softmax gating multinomial logistic mixture of experts",
        "Proceedings of the 41st International Conference on Machine Learning, 37617-37648",
        "arXiv 2310.14188",
    ),
    Reference(
        "Nguyen et al. (2023)",
        "H. Nguyen, T. Nguyen and N. Ho",
        "Demystifying softmax gating function in Gaussian mixture of experts",
        "Advances in Neural Information Processing Systems",
        "arXiv 2305.03288",
        note="Known here from what the papers above quote of it, and from its program, the public"
        " repository CRPE-SGaME.",
    ),
    Reference(
        "Al-Baali and Fletcher (1985)",
        "M. Al-Baali and R. Fletcher",
        "Variational methods for non-linear least-squares",
        "Journal of the Operational Research Society 36, 405-421",
    ),
    Reference(
        "Arthur and Vassilvitskii (2007)",
        "D. Arthur and S. Vassilvitskii",
        "k-means++: the advantages of careful seeding",
        "Proceedings of the 18th ACM-SIAM Symposium on Discrete Algorithms, 1027-1035",
    ),
    Reference(
        "Burke, Lewis and Overton (2005)",
        "J. V. Burke, A. S. Lewis and M. L. Overton",
        "A robust gradient sampling algorithm for nonsmooth, nonconvex optimization",
        "SIAM Journal on Optimization 15, 751-779",
        "doi 10.1137/030601296",
    ),
    Reference(
        "Carter and Wegman (1979)",
        "J. L. Carter and M. N. Wegman",
        "Universal classes of hash functions",
        "Journal of Computer and System Sciences 18, 143-154",
    ),
    Reference(
        "Chen et al. (2022)",
        "Z. Chen, Y. Deng, Y. Wu, Q. Gu and Y. Li",
        "Towards understanding mixture of experts in deep learning",
        "Advances in Neural Information Processing Systems 35",
        "arXiv 2208.02813",
    ),
    Reference(
        "Chi et al. (2022)",
        "Z. Chi, L. Dong, S. Huang, D. Dai, S. Ma, B. Patra, S. Singhal, P. Bajaj, X. Song,"
        " X.-L. Mao, H. Huang and F. Wei",
        "On the representation collapse of sparse mixture of experts",
        "Advances in Neural Information Processing Systems 35",
        "arXiv 2204.09179",
    ),
    Reference(
        "Dacunha-Castelle and Gassiat (1999)",
        "D. Dacunha-Castelle and E. Gassiat",
        "Testing the order of a model using locally conic parametrization: population mixtures and"
        " stationary ARMA processes",
        "Annals of Statistics 27, 1178-1209",
    ),
    Reference(
        "Fletcher and Xu (1987)",
        "R. Fletcher and C. Xu",
        "Hybrid methods for nonlinear least squares",
        "IMA Journal of Numerical Analysis 7, 371-389",
    ),
    Reference(
        "Fraley and Raftery (2007)",
        "C. Fraley and A. E. Raftery",
        "Bayesian regularization for normal mixture estimation and model-based clustering",
        "Journal of Classification 24, 155-181",
        "doi 10.1007/s00357-007-0004-5",
    ),
    Reference(
        "Gelman et al. (2008)",
        "A. Gelman, A. Jakulin, M. G. Pittau and Y.-S. Su",
        "A weakly informative default prior distribution for logistic and other regression models",
        "Annals of Applied Statistics 2, 1360-1383",
        "doi 10.1214/08-AOAS191",
    ),
    Reference(
        "Wheeler (1974)",
        "J. C. Wheeler",
        "Modified moments and Gaussian quadratures",
        "Rocky Mountain Journal of Mathematics 4, 287-296",
    ),
    Reference(
        "Golub and Welsch (1969)",
        "G. H. Golub and J. H. Welsch",
        "Calculation of Gauss quadrature rules",
        "Mathematics of Computation 23, 221-230",
    ),
    Reference(
        "Litterer and Lyons (2012)",
        "C. Litterer and T. Lyons",
        "High order recombination and an application to cubature on Wiener space",
        "The Annals of Applied Probability 22, 1301-1327",
    ),
    Reference(
        "Tchakaloff (1957)",
        "V. Tchakaloff",
        "Formules de cubatures mécaniques à coefficients non négatifs",
        "Bulletin des Sciences Mathématiques 81, 123-134",
    ),
    Reference(
        "Holm (1979)",
        "S. Holm",
        "A simple sequentially rejective multiple test procedure",
        "Scandinavian Journal of Statistics 6, 65-70",
    ),
    Reference(
        "Kingma and Ba (2015)",
        "D. P. Kingma and J. Ba",
        "Adam: a method for stochastic optimization",
        "International Conference on Learning Representations",
        "arXiv 1412.6980",
    ),
    Reference(
        "Komatsuzaki et al. (2023)",
        "A. Komatsuzaki, J. Puigcerver, J. Lee-Thorp, C. Riquelme Ruiz, B. Mustafa, J. Ainslie,"
        " Y. Tay, M. Dehghani and N. Houlsby",
        "Sparse upcycling: training mixture-of-experts from dense checkpoints",
        "International Conference on Learning Representations",
        "arXiv 2212.05055",
    ),
    Reference(
        "Lawson and Hanson (1974)",
        "C. L. Lawson and R. J. Hanson",
        "Solving least squares problems",
        "Prentice-Hall",
    ),
    Reference(
        "Lemire and Kaser (2014)",
        "D. Lemire and O. Kaser",
        "Strongly universal string hashing is fast",
        "The Computer Journal 57, 1624-1638",
        "arXiv 1202.4961",
    ),
    Reference(
        "Lewis and Overton (2013)",
        "A. S. Lewis and M. L. Overton",
        "Nonsmooth optimization via quasi-Newton methods",
        "Mathematical Programming 141, 135-163",
        "doi 10.1007/s10107-012-0514-2",
    ),
    Reference(
        "MacKinnon and White (1985)",
        "J. G. MacKinnon and H. White",
        "Some heteroskedasticity-consistent covariance matrix estimators with improved finite"
        " sample properties",
        "Journal of Econometrics 29, 305-325",
    ),
    Reference(
        "More and Sorensen (1983)",
        "J. J. More and D. C. Sorensen",
        "Computing a trust region step",
        "SIAM Journal on Scientific and Statistical Computing 4, 553-572",
        "doi 10.1137/0904038",
    ),
    Reference(
        "Nocedal (1980)",
        "J. Nocedal",
        "Updating quasi-Newton matrices with limited storage",
        "Mathematics of Computation 35, 773-782",
        "doi 10.1090/S0025-5718-1980-0572855-7",
    ),
    Reference(
        "Nocedal and Wright (2006)",
        "J. Nocedal and S. J. Wright",
        "Numerical optimization",
        "Second edition, Springer",
    ),
    Reference(
        "Nielsen (1999)",
        "H. B. Nielsen",
        "Damping parameter in Marquardt's method",
        "Technical University of Denmark, report IMM-REP-1999-05",
    ),
    Reference(
        "Shazeer (2020)",
        "N. Shazeer",
        "GLU variants improve transformer",
        "preprint",
        "arXiv 2002.05202",
    ),
    Reference(
        "Shazeer et al. (2017)",
        "N. Shazeer, A. Mirhoseini, K. Maziarz, A. Davis, Q. Le, G. Hinton and J. Dean",
        "Outrageously large neural networks: the sparsely-gated mixture-of-experts layer",
        "International Conference on Learning Representations",
        "arXiv 1701.06538",
    ),
    Reference(
        "Transtrum and Sethna (2012)",
        "M. K. Transtrum and J. P. Sethna",
        "Improvements to the Levenberg-Marquardt algorithm for nonlinear least-squares"
        " minimization",
        "preprint",
        "arXiv 1201.5885",
    ),
    Reference(
        "Varadhan and Roland (2008)",
        "R. Varadhan and C. Roland",
        "Simple and globally convergent methods for accelerating the convergence of any EM"
        " algorithm",
        "Scandinavian Journal of Statistics 35, 335-353",
        "doi 10.1111/j.1467-9469.2007.00585.x",
    ),
    Reference(
        "Biernacki, Celeux and Govaert (2000)",
        "C. Biernacki, G. Celeux and G. Govaert",
        "Assessing a mixture model for clustering with the integrated completed likelihood",
        "IEEE Transactions on Pattern Analysis and Machine Intelligence 22, 719-725",
    ),
    Reference(
        "Biernacki, Celeux and Govaert (2003)",
        "C. Biernacki, G. Celeux and G. Govaert",
        "Choosing starting values for the EM algorithm for getting the highest likelihood in"
        " multivariate Gaussian mixture models",
        "Computational Statistics and Data Analysis 41, 561-575",
    ),
    Reference(
        "Chan, Golub and LeVeque (1983)",
        "T. F. Chan, G. H. Golub and R. J. LeVeque",
        "Algorithms for computing the sample variance: analysis and recommendations",
        "The American Statistician 37(3), 242-247",
    ),
    Reference(
        "Cook and Weisberg (1982)",
        "R. D. Cook and S. Weisberg",
        "Residuals and influence in regression",
        "Chapman and Hall",
    ),
    Reference(
        "Gruen and Leisch (2008)",
        "B. Gruen and F. Leisch",
        "FlexMix version 2: finite mixtures with concomitant variables and varying and constant"
        " parameters",
        "Journal of Statistical Software 28(4), 1-35",
        "doi 10.18637/jss.v028.i04",
    ),
    Reference(
        "Leisch (2004)",
        "F. Leisch",
        "FlexMix: a general framework for finite mixture models and latent class regression in R",
        "Journal of Statistical Software 11(8), 1-18",
    ),
    Reference(
        "Li and Chen (2010)",
        "P. Li and J. Chen",
        "Testing the order of a finite mixture",
        "Journal of the American Statistical Association 105, 1084-1092",
    ),
    Reference(
        "Cameron and Trivedi (2013)",
        "A. C. Cameron and P. K. Trivedi",
        "Regression analysis of count data, second edition",
        "Cambridge University Press",
    ),
    Reference(
        "McCullagh and Nelder (1989)",
        "P. McCullagh and J. A. Nelder",
        "Generalized linear models, second edition",
        "Chapman and Hall",
    ),
    Reference(
        "Steihaug (1983)",
        "T. Steihaug",
        "The conjugate gradient method and trust regions in large scale optimization",
        "SIAM Journal on Numerical Analysis 20, 626-637",
    ),
    Reference(
        "Wilkinson and Rogers (1973)",
        "G. N. Wilkinson and C. E. Rogers",
        "Symbolic description of factorial models for analysis of variance",
        "Applied Statistics 22, 392-399",
    ),
    Reference(
        "Dunn and Smyth (1996)",
        "P. K. Dunn and G. K. Smyth",
        "Randomized quantile residuals",
        "Journal of Computational and Graphical Statistics 5, 236-244",
    ),
    Reference(
        "Hai, Mai, Nguyen, Ho, Nguyen and Drovandi (2025)",
        "D. T. Hai, T. N. Mai, T. Nguyen, N. Ho, B. T. Nguyen and C. Drovandi",
        "Dendrograms of mixing measures for softmax-gated Gaussian mixture of experts:"
        " consistency without model sweeps",
        "preprint",
        "arXiv 2510.12744",
    ),
    Reference(
        "Hannan and Quinn (1979)",
        "E. J. Hannan and B. G. Quinn",
        "The determination of the order of an autoregression",
        "Journal of the Royal Statistical Society B 41, 190-195",
    ),
    Reference(
        "Liang and Zeger (1986)",
        "K.-Y. Liang and S. L. Zeger",
        "Longitudinal data analysis using generalized linear models",
        "Biometrika 73, 13-22",
    ),
    Reference(
        "McLachlan (1987)",
        "G. J. McLachlan",
        "On bootstrapping the likelihood ratio test statistic for the number of components"
        " in a normal mixture",
        "Applied Statistics 36, 318-324",
    ),
    Reference(
        "Ueda, Nakano, Ghahramani and Hinton (2000)",
        "N. Ueda, R. Nakano, Z. Ghahramani and G. E. Hinton",
        "SMEM algorithm for mixture models",
        "Neural Computation 12, 2109-2128",
    ),
    Reference(
        "White (1982)",
        "H. White",
        "Maximum likelihood estimation of misspecified models",
        "Econometrica 50, 1-25",
    ),
)

REFERENCES = {work.label: work for work in _WORKS}
"""Label -> work: the five papers, the two that they build on, and methods."""

_NAME = r"[A-Z][a-z]?[A-Za-z]*[a-z](?:-[A-Z][a-z]+)?"
_LABEL = re.compile(
    rf"(?<![\w.])(({_NAME}(?: et al\.|(?:, {_NAME})*,? and {_NAME})?) \(?((?:19|20)\d\d|n\.d\.)\)?)"
)
_BREAK = re.compile(r"\s*\n[ \t]*(?:#:?|//)?[ \t]*")


def cited_in(text: str) -> set[str]:
    """Labels ``Authors (year)`` that a text cites, in or without brackets around the year.

    Examples
    --------
    >>> sorted(cited_in("Source: Pham et al. (2026), eq. (1); see (Golub and Welsch 1969)."))
    ['Golub and Welsch (1969)', 'Pham et al. (2026)']
    """
    several = _LABEL.findall(_BREAK.sub(" ", text))
    return {
        f"{who} ({year})"
        for whole, who, year in several
        if " and " in who or who.endswith(" et al.") or whole.endswith(f"({year})")
    }


def page() -> str:
    """The page `docs/references.md`."""
    lines = ["# References", "", "Works are cited in code and pages by author and year."]
    for title, works in (
        ("The five papers", [work for work in _WORKS if work.folder]),
        ("Other works", [work for work in _WORKS if not work.folder]),
    ):
        lines += ["", f"## {title}", ""]
        for work in works:
            end = f", {work.identifier}" if work.identifier else ""
            place = f" Experiments and claims: `{work.folder}`." if work.folder else ""
            note = f" {work.note}" if work.note else ""
            what = f"{work.authors}. *{work.title}.* {work.where}{end}."
            lines.append(f"- **{work.label}.** {what}{place}{note}")
    return "\n".join(lines) + "\n"
