// Before anything is painted: the person's choice of light or dark, if there is one.

const chosen = localStorage.getItem('semel-theme');
if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
